// @ts-check
/**
 * REPLACE THIS FILE by the implementation that you want to check.
 *
 * It is a small one, so that there is something to check from the start: a list of messages in memory, with compaction. It knows
 * nothing of the wire but the form of a message.
 *
 * @import { Message } from "./vocabulary.ts"
 */

/** What is kept word for word if nobody says how much, in tokens. */
const TAIL = 2000;

/** A summary, and the id of the message with which the part begins that is kept word for word. */
export class Checkpoint {
  /**
   * @param {string} id
   * @param {string} summary
   * @param {string} firstKept
   */
  constructor(id, summary, firstKept) {
    this.id = id;
    this.summary = summary;
    this.firstKept = firstKept;
  }
}

/** @typedef {Message | Checkpoint} Entry */

/**
 * A compaction that waits for its summary. `leaf` is the entry behind which it was planned, `excluded` what leaves the tail.
 *
 * @typedef {object} Plan
 * @property {string} leaf
 * @property {string} firstKept
 * @property {string[]} excluded
 * @property {Checkpoint | undefined} previous
 * @property {boolean} refresh Whether the tail stays as it is, so that the summary alone is written anew.
 */

/** There is nothing to compact, and this is why. */
export class NothingToDo extends Error {
  /** @param {"too-few-turns" | "checkpoint-is-leaf"} reason */
  constructor(reason) {
    super(reason);
    this.reason = reason;
  }
}

/** A tool call waits for its result. */
export class Unstable extends Error {}

/** The conversation has gone on since the compaction was planned. */
export class Stale extends Error {}

/** Messages and checkpoints in the order in which they came. Nothing is ever taken away. */
export class Conversation {
  /** @param {number | undefined} tail */
  constructor(tail) {
    this.tail = tail ?? TAIL;
    /** @type {Entry[]} */
    this.entries = [];
  }

  /** @param {Message} message */
  append(message) {
    this.entries.push(message);
  }

  /**
   * Plan a compaction. Throws `Unstable` and `NothingToDo`.
   *
   * @returns {Plan}
   */
  begin() {
    if (this.openCalls().size > 0) {
      throw new Unstable();
    }
    const previous = this.checkpoint();
    const messages = this.#messages();
    const present = previous ? indexOf(messages, previous.firstKept) : 0;
    // Without a checkpoint at least the first turn is summarised.
    const turns = turnsOf(messages);
    const places = previous ? turns.filter((place) => place >= present) : turns.slice(1);
    const leaf = this.entries.at(-1);
    const first = messages[this.#place(messages, places, previous === undefined)];
    if (leaf === undefined || first === undefined) {
      throw new NothingToDo("too-few-turns");
    }
    if (leaf === previous) {
      throw new NothingToDo("checkpoint-is-leaf");
    }
    return {
      leaf: leaf.id,
      firstKept: first.id,
      excluded: messages.slice(present, messages.indexOf(first)).map((message) => message.id),
      previous,
      refresh: previous?.firstKept === first.id,
    };
  }

  /**
   * Add the checkpoint with its summary. Throws `Stale`.
   *
   * @param {Plan} plan
   * @param {string} summary
   */
  commit(plan, summary) {
    if (this.entries.at(-1)?.id !== plan.leaf) {
      throw new Stale();
    }
    const number = this.entries.filter((entry) => entry instanceof Checkpoint).length + 1;
    const checkpoint = new Checkpoint(`${plan.leaf}:summary:${number}`, summary, plan.firstKept);
    this.entries.push(checkpoint);
    return checkpoint;
  }

  /** The latest one, if there is one. */
  checkpoint() {
    return this.entries.filter((entry) => entry instanceof Checkpoint).at(-1);
  }

  /**
   * What the model is sent: the latest summary, if there is one, and the tail.
   *
   * @returns {Entry[]}
   */
  request() {
    const latest = this.checkpoint();
    const messages = this.#messages();
    return latest ? [latest, ...messages.slice(indexOf(messages, latest.firstKept))] : messages;
  }

  /** The tool calls that wait for their results, each with the message that made it. */
  openCalls() {
    return openCallsOf(this.#messages());
  }

  #messages() {
    return this.entries.flatMap((entry) => (entry instanceof Checkpoint ? [] : [entry]));
  }

  /**
   * Where the tail is to begin: as early as the budget allows, and with the last turn if that is too long.
   *
   * @param {Message[]} messages
   * @param {number[]} places
   * @param {boolean} isFirst
   */
  #place(messages, places, isFirst) {
    const last = places.at(-1) ?? messages.length;
    if (isFirst && cost(messages) <= this.tail) {
      // Nothing had to be summarised, but somebody asked for it.
      return last;
    }
    return places.find((place) => cost(messages.slice(place)) <= this.tail) ?? last;
  }
}

/**
 * What an entry costs in a request, in tokens: four characters are about one.
 *
 * @param {Entry} entry
 */
export function estimate(entry) {
  const text = entry instanceof Checkpoint ? entry.summary : JSON.stringify(entry.parts);
  return 4 + Math.floor(text.length / 4);
}

/** @param {Message[]} messages */
function cost(messages) {
  return messages.reduce((sum, message) => sum + estimate(message), 0);
}

/**
 * @param {Message[]} messages
 * @param {string} id
 */
function indexOf(messages, id) {
  return messages.findIndex((message) => message.id === id);
}

/** @param {Message[]} messages */
function openCallsOf(messages) {
  /** @type {Map<string, string>} */
  const calls = new Map();
  for (const message of messages) {
    for (const part of message.parts) {
      if (part.kind === "tool-call") {
        calls.set(part.call, message.id);
      } else if (part.kind === "tool-result") {
        calls.delete(part.call);
      }
    }
  }
  return calls;
}

/**
 * Where turns begin: at each message of the user that was not typed while a tool ran.
 *
 * @param {Message[]} messages
 */
function turnsOf(messages) {
  return [...messages.keys()].filter(
    (index) => messages[index]?.role === "user" && openCallsOf(messages.slice(0, index)).size === 0,
  );
}
