// @ts-check
/**
 * The adapter: turns each request of the wire into calls of the implementation, and its state into an observation.
 *
 * Run by the suite: `tailmark check -- node adapter.mjs`. What has to be changed for another implementation is marked with CHANGE.
 *
 * @import * as shown from "./vocabulary.ts"
 * @import { Entry, Plan } from "./implementation.mjs"
 */

import { Checkpoint, Conversation, NothingToDo, Stale, Unstable, estimate } from "./implementation.mjs";
import { PROTOCOL, digest, serve } from "./wire.mjs";

// CHANGE: what you offer. What is not offered is neither asked nor judged; take a line away when you have it.
const DECLARATION = {
  implementation: "a list of messages",
  capabilities: ["view", "history", "batch"],
  // Costs are compared as they are estimated: it knows no usage that a provider reports.
  readings: { measure: "plain" },
  // What it cannot show. It may be left out of observations and plans.
  hidden: ["revision", "model", "settings", "occupancy", "metadata", "sizes", "record", "fresh"],
  // Operations that it does not have, and forms of messages that it does not know.
  lacks: [
    "save",
    "settle",
    "abandon",
    "answers",
    "preview",
    "cancel-compaction",
    "set-model",
    "set-metadata",
    "restart",
    "given-ids",
    "follows",
    "refusals",
    "inline-results",
    "preliminary-results",
    "approvals",
  ],
};

/** @type {Map<string, Conversation>} */
const sessions = new Map();
/**
 * The plans that were begun, by their session and id.
 *
 * @type {Map<string, Plan>}
 */
const plans = new Map();

// The methods of the wire. They may be async.

/** The first call. */
function initialize() {
  return { protocol: PROTOCOL, declaration: DECLARATION };
}

/**
 * Forget everything, and begin with these empty sessions.
 *
 * @param {{ sessions: string[], settings?: { tail?: number } }} parameters
 */
function reset(parameters) {
  sessions.clear();
  plans.clear();
  for (const name of parameters.sessions) {
    // CHANGE: make your own, one for each session.
    sessions.set(name, new Conversation(parameters.settings?.tail));
  }
  return {};
}

/** @param {{ operation: shown.Operation }} parameters */
function perform({ operation }) {
  return { outcome: outcomeOf(operation) };
}

/** Show everything: each session, and each stored node. */
function observe() {
  const all = [...sessions];
  return {
    observation: {
      sessions: all.map(([name, conversation]) => view(name, conversation)),
      nodes: all.flatMap(([, conversation]) => nodes(conversation)),
    },
  };
}

// CHANGE: the operations. Each calls the implementation and says what came of it.

/**
 * @param {shown.Operation} operation
 * @returns {shown.Outcome}
 */
function outcomeOf(operation) {
  // A commit names its session in the plan.
  const name = operation.kind === "commit-compaction" ? operation.plan.session : operation.session;
  const conversation = sessions.get(name);
  if (conversation === undefined) {
    return { kind: "refused", code: "unknown-session" };
  }
  switch (operation.kind) {
    case "append":
      conversation.append(operation.message);
      return { kind: "done", written: [operation.message.id] };
    case "begin-compaction":
      return begin(conversation, operation);
    case "commit-compaction":
      return commit(conversation, operation);
    case "load":
      return { kind: "done" };
  }
}

/**
 * Plan a compaction. The suite writes the summary, and brings the plan back with it.
 *
 * @param {Conversation} conversation
 * @param {shown.BeginCompaction} operation
 * @returns {shown.Outcome}
 */
function begin(conversation, operation) {
  try {
    const plan = conversation.begin();
    plans.set(JSON.stringify([operation.session, operation.plan]), plan);
    return { kind: "planned", plan: shownPlan(operation, plan, conversation.tail) };
  } catch (error) {
    if (error instanceof NothingToDo) {
      return { kind: "noop", reason: error.reason };
    }
    if (error instanceof Unstable) {
      return { kind: "skipped", open_calls: [...conversation.openCalls().keys()], answer_running: false };
    }
    throw error;
  }
}

/**
 * Write the checkpoint, if the reply is a summary.
 *
 * @param {Conversation} conversation
 * @param {shown.CommitCompaction} operation
 * @returns {shown.Outcome}
 */
function commit(conversation, operation) {
  const plan = plans.get(JSON.stringify([operation.plan.session, operation.plan.id]));
  if (plan === undefined || operation.reply === null) {
    return { kind: "refused", code: "plan" };
  }
  const { text, fault } = summaryOf(operation.reply);
  if (fault !== undefined) {
    return { kind: "failed", reason: fault };
  }
  try {
    return { kind: "committed", checkpoint: conversation.commit(plan, text).id };
  } catch (error) {
    if (error instanceof Stale) {
      return { kind: "stale", leaf: conversation.entries.at(-1)?.id ?? null, revision: 0 };
    }
    throw error;
  }
}

/**
 * The text of a summary, or what is wrong with the reply.
 *
 * @param {shown.Reply} reply
 * @returns {{ text: string, fault?: "summariser" | "truncated" | "not-text" | "blank" }}
 */
function summaryOf(reply) {
  if (reply.kind === "summary-failure") {
    return { text: "", fault: "summariser" };
  }
  const kinds = new Set(reply.parts.map((part) => part.kind));
  const text = reply.parts.flatMap((part) => (part.kind === "text" ? [part.text] : [])).join("\n\n");
  if (reply.finish === "length") {
    return { text, fault: "truncated" };
  }
  if (reply.finish === "tool-call" || kinds.has("tool-call") || (kinds.has("reasoning") && !kinds.has("text"))) {
    return { text, fault: "not-text" };
  }
  return text.trim() === "" ? { text, fault: "blank" } : { text };
}

// CHANGE: what is shown. The vocabulary has every field: see docs/vocabulary.md of tailmark.

/**
 * @param {shown.BeginCompaction} operation
 * @param {Plan} plan
 * @param {number} tail
 * @returns {shown.Plan}
 */
function shownPlan(operation, plan, tail) {
  const { previous } = plan;
  const { instructions } = operation;
  return {
    id: operation.plan,
    session: operation.session,
    leaf: plan.leaf,
    base: plan.leaf,
    trigger: "manual",
    first_kept: plan.firstKept,
    old_first_kept: previous?.firstKept ?? null,
    previous_checkpoint: previous?.id ?? null,
    previous_summary: previous?.summary ?? null,
    excluded: plan.excluded,
    refresh: plan.refresh,
    budgets: { tail },
    instructions: instructions ?? null,
    request: {
      previous_summary: previous?.summary ?? null,
      messages: plan.excluded,
      ...(instructions === undefined ? {} : { instructions }),
    },
  };
}

/**
 * @param {string} name
 * @param {Conversation} conversation
 * @returns {shown.SessionView}
 */
function view(name, conversation) {
  const branch = conversation.entries.map((entry) => entry.id);
  return {
    session: name,
    leaf: branch.at(-1) ?? null,
    branch,
    open_calls: [...conversation.openCalls()].map(([call, message]) => ({ call, message })),
    running: null,
    checkpoint: conversation.checkpoint()?.id ?? null,
    projection: conversation.request().map(item),
    budgets: { tail: conversation.tail },
  };
}

/**
 * @param {Entry} entry
 * @returns {shown.ProjectionItem}
 */
function item(entry) {
  const both = { node: entry.id, estimate: estimate(entry) };
  return entry instanceof Checkpoint
    ? { ...both, role: "user", marking: "context", digest: digest(entry.summary) }
    : { ...both, role: entry.role, marking: "verbatim", digest: digest(entry) };
}

/**
 * @param {Conversation} conversation
 * @returns {shown.StoredNode[]}
 */
function nodes(conversation) {
  return conversation.entries.map((entry, index) => ({
    parent: conversation.entries[index - 1]?.id ?? null,
    content: content(entry),
    estimate: estimate(entry),
  }));
}

/**
 * @param {Entry} entry
 * @returns {shown.Message | shown.Checkpoint}
 */
function content(entry) {
  return entry instanceof Checkpoint
    ? { kind: "checkpoint", id: entry.id, summary: entry.summary, first_kept: entry.firstKept }
    : entry;
}

await serve({ initialize, reset, perform, observe, shutdown: () => ({}) });
