/**
 * pi's session files as the suite sees them: sessions by the suite's ids, entries by the suite's names.
 *
 * A session is a file of its own, as in pi. The table says which of the suite's messages an entry of pi stands for; it belongs
 * to the adapter and outlives a restart, because the suite's ids are nothing that pi could keep. All content is read
 * from pi's entries.
 */

import { digestOf, fromPi, toPi } from "./forms.mjs";

/** All sessions of one folder. `pi` is the package as `package.mjs` loads it. */
export class Conversations {
  #pi;
  #folder;
  #managers = new Map();
  /** pi's entry id → the row beside its message, or the name of its compaction. */
  #rows = new Map();
  #compactions = new Map();

  constructor(pi, folder, sessions) {
    this.#pi = pi;
    this.#folder = folder;
    for (const session of sessions) {
      this.#managers.set(session, pi.SessionManager.create(folder, folder));
    }
  }

  /** pi's manager of a session. */
  manager(session) {
    const manager = this.#managers.get(session);
    if (manager === undefined) {
      throw new Error(`there is no session ${session}`);
    }
    return manager;
  }

  /** Append one message, and answer its id. */
  append(session, message) {
    const manager = this.manager(session);
    const [form, row] = toPi(message, (call) => nameOfCall(manager.getBranch(), call));
    this.#rows.set(manager.appendMessage(form), row);
    return row.id;
  }

  /** Append a compaction, and answer the name under which it is shown. */
  appendCompaction(session, { summary, firstKeptEntryId, tokensBefore, details }) {
    const id = this.manager(session).appendCompaction(summary, firstKeptEntryId, tokensBefore, details);
    this.#compactions.set(id, `compaction-${this.#compactions.size + 1}`);
    return this.nameOf(id);
  }

  /** The suite's name of an entry. */
  nameOf(id) {
    return this.#compactions.get(id) ?? this.#rows.get(id)?.id ?? id;
  }

  /** The entry that has one of the suite's names, and pi's manager of the first session that has it in its file. */
  find(name) {
    for (const manager of this.#managers.values()) {
      const entry = manager.getEntries().find((one) => this.nameOf(one.id) === name);
      if (entry !== undefined) {
        return { manager, entry };
      }
    }
    throw new Error(`${name} is not stored`);
  }

  /** Open another session at a stored message: pi copies the path to it into a file of its own. */
  fork(name, session) {
    const { manager, entry } = this.find(name);
    const forked = this.#pi.SessionManager.open(manager.getSessionFile(), this.#folder);
    forked.createBranchedSession(entry.id);
    this.#managers.set(session, forked);
  }

  /** Read a session from its file again. */
  load(session) {
    this.#managers.set(session, this.#opened(this.manager(session)));
  }

  /** Read all sessions from their files again, as another process of pi would. */
  reopen() {
    for (const session of this.#managers.keys()) {
      this.load(session);
    }
  }

  #opened(manager) {
    return this.#pi.SessionManager.open(manager.getSessionFile(), this.#folder);
  }

  /** What the sessions show now; `fresh`: what another process of pi would show. */
  observe(fresh) {
    const nodes = new Map();
    const sessions = [];
    for (const [session, manager] of this.#managers) {
      const shown = fresh ? this.#opened(manager) : manager;
      sessions.push(this.#view(session, shown));
      for (const entry of shown.getEntries()) {
        // A fork has copies under the ids of the originals.
        nodes.set(entry.id, nodes.get(entry.id) ?? this.#node(entry));
      }
    }
    return { sessions, nodes: [...nodes.values()] };
  }

  #view(session, manager) {
    const branch = manager.getBranch();
    const leaf = manager.getLeafId();
    const latest = this.#pi.getLatestCompactionEntry(branch);
    return {
      session,
      leaf: leaf === null ? null : this.nameOf(leaf),
      branch: branch.map((entry) => this.nameOf(entry.id)),
      running: null,
      checkpoint: latest === null ? null : this.nameOf(latest.id),
      projection: this.projection(manager),
    };
  }

  #node(entry) {
    const parent = entry.parentId === null ? null : this.nameOf(entry.parentId);
    if (entry.type === "compaction") {
      const content = {
        kind: "checkpoint",
        id: this.nameOf(entry.id),
        summary: entry.summary,
        first_kept: this.nameOf(entry.firstKeptEntryId),
      };
      return { parent, content, estimate: this.#estimate({ role: "compactionSummary", summary: entry.summary }) };
    }
    return { parent, content: this.message(entry), estimate: this.#estimate(entry.message) };
  }

  /** The suite's message of an entry. */
  message(entry) {
    const row = this.#rows.get(entry.id);
    if (entry.type !== "message" || row === undefined) {
      throw new Error(`pi stored an entry that nobody gave it: ${JSON.stringify(entry).slice(0, 200)}`);
    }
    return fromPi(entry.message, row);
  }

  #estimate(message) {
    return this.#pi.estimateTokens(message);
  }

  /** What pi would send: its context, each message in the form in which it goes to a model. */
  projection(manager) {
    const branch = manager.getBranch();
    return manager.buildSessionContext().messages.map((message) => {
      const [sent] = this.#pi.convertToLlm([message]);
      const entry = branch.find((one) => one.message === message);
      if (entry !== undefined && sent === message) {
        const content = this.message(entry);
        return {
          node: content.id,
          role: content.role,
          marking: "verbatim",
          digest: digestOf(content),
          estimate: this.#estimate(message),
        };
      }
      return this.#summaryItem(branch, message, sent);
    });
  }

  #summaryItem(branch, message, sent) {
    const of = branch.findLast((one) => one.type === "compaction" && one.summary === message.summary);
    const text = sent.content.map((block) => block.text).join("");
    return {
      node: of === undefined ? null : this.nameOf(of.id),
      role: sent.role,
      // pi puts the summary between words that say what it is.
      marking: text !== message.summary && text.includes(message.summary) ? "context" : "unmarked",
      digest: digestOf(message.summary),
      estimate: this.#estimate(message),
    };
  }
}

function nameOfCall(branch, call) {
  const calls = branch.flatMap((entry) => entry.message?.content ?? []).filter((block) => block.type === "toolCall");
  return calls.findLast((block) => block.id === call)?.name ?? "unknown";
}
