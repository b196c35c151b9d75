/**
 * The pi coding agent on the wire: node adapter.mjs FOLDER, where FOLDER/node_modules has the package.
 *
 * Exit code 2: the package is not there. What is declared, and why, is in README.md beside this file.
 */

import { resolve } from "node:path";
import { Compaction, NothingToCompact, register } from "./compactions.mjs";
import { Conversations } from "./conversations.mjs";
import { load, UsageError } from "./package.mjs";
import { serve } from "./wire.mjs";

const PROTOCOL = 1;

function declarationOf(version) {
  return {
    implementation: `pi coding agent ${version}`,
    capabilities: ["view", "history", "tree", "batch"],
    readings: { measure: "plain" },
    hidden: [
      "revision",
      "open-calls",
      "metadata",
      "model",
      "sizes",
      "record",
      "settings",
      "budgets",
      "occupancy",
    ],
    lacks: [
      "save",
      "settle",
      "abandon",
      "answers",
      "preview",
      "cancel-compaction",
      "retry",
      "undo",
      "set-model",
      "set-metadata",
      "given-ids",
      "follows",
      "refusals",
      "inline-results",
      "joint-results",
      "interruptions",
      "preliminary-results",
      "approvals",
    ],
    deviations: [
      {
        clause: "BND-1",
        reason: "a turn above keepRecentTokens is split: it is cut at an assistant message, and its beginning is summarised for itself",
        link: `https://github.com/badlogic/pi-mono/blob/v${version}/packages/coding-agent/docs/compaction.md#split-turns`,
      },
    ],
  };
}

/** The methods of the wire, on one package. */
class Adapter {
  #pi;
  #conversations = null;
  #settings = {};
  #plans = new Map();

  constructor(pi) {
    this.#pi = pi;
    register(pi);
  }

  initialize() {
    return { protocol: PROTOCOL, declaration: declarationOf(this.#pi.version) };
  }

  reset({ sessions, settings, store_dir: folder }) {
    this.#conversations = new Conversations(this.#pi, folder, sessions);
    this.#plans.clear();
    const { tail } = settings ?? {};
    const defaults = this.#pi.defaultSettings;
    this.#settings = { head: settings?.head ?? "", compaction: { ...defaults, keepRecentTokens: tail ?? defaults.keepRecentTokens } };
    return {};
  }

  observe({ fresh }) {
    return { observation: this.#conversations.observe(fresh ?? false) };
  }

  async perform({ operation }) {
    return { outcome: await this.#outcome(operation) };
  }

  shutdown() {
    return {};
  }

  #outcome(operation) {
    switch (operation.kind) {
      case "append":
        return { kind: "done", written: [this.#conversations.append(operation.session, operation.message)] };
      case "begin-compaction":
        return this.#begin(operation);
      case "commit-compaction":
        return this.#commit(operation);
      case "edit":
        return this.#edit(operation);
      case "fork":
        this.#conversations.fork(operation.target, operation.new_session);
        return { kind: "done" };
      case "load":
        this.#conversations.load(operation.session);
        return { kind: "done" };
      case "restart":
        this.#conversations.reopen();
        this.#plans.clear();
        return { kind: "done" };
      default:
        throw new Error(`the operation '${operation.kind}' is declared as lacking`);
    }
  }

  #begin({ session, plan, instructions }) {
    const words = instructions || null;
    try {
      const compaction = new Compaction(this.#pi, this.#conversations, session, this.#settings.compaction, words ?? undefined);
      this.#plans.set(`${session} ${plan}`, compaction);
      return { kind: "planned", plan: compaction.plan(plan, words) };
    } catch (error) {
      if (error instanceof NothingToCompact) {
        return { kind: "noop", reason: error.message };
      }
      throw error;
    }
  }

  async #commit({ plan, reply }) {
    const checkpoint = await this.#plans.get(`${plan.session} ${plan.id}`).commit(reply);
    return checkpoint === null ? { kind: "failed", reason: "summariser" } : { kind: "committed", checkpoint };
  }

  /** As pi's tree does it: the leaf goes to the message's parent, and the new message is sent from there. */
  #edit({ session, target, message }) {
    const conversations = this.#conversations;
    const manager = conversations.manager(session);
    const branch = manager.getBranch();
    const place = branch.findIndex((entry) => conversations.nameOf(entry.id) === target);
    const left = branch.slice(place + 1).filter((entry) => entry.message?.role === "user");
    const { parentId } = branch[place];
    if (parentId === null) {
      manager.resetLeaf();
    } else {
      manager.branch(parentId);
    }
    const written = conversations.append(session, message);
    return {
      kind: "sent",
      request: { head: this.#settings.head, items: conversations.projection(manager), built_on: written },
      written: [written],
      left: left.map((entry) => conversations.nameOf(entry.id)),
    };
  }
}

/** The methods by their names on the wire. */
function methodsOf(adapter) {
  const names = ["initialize", "reset", "perform", "observe", "shutdown"];
  return Object.fromEntries(names.map((name) => [name, (parameters) => adapter[name](parameters)]));
}

async function main(words) {
  if (words.length !== 1) {
    throw new UsageError("name one folder, whose node_modules has @mariozechner/pi-coding-agent");
  }
  const adapter = new Adapter(await load(resolve(words[0])));
  await serve(methodsOf(adapter), process.stdin, process.stdout);
  process.exit(0);
}

main(process.argv.slice(2)).catch((error) => {
  const usage = error instanceof UsageError;
  process.stderr.write(`pi adapter: ${usage ? error.message : error.stack}\n`);
  process.exit(usage ? 2 : 1);
});
