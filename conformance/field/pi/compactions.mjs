/**
 * A compaction of pi in two halves. pi's `compact` is one asynchronous function: it is started with a model whose answers
 * the suite brings later, and what it asked of that model by then is what the plan shows.
 */

import { answerOfSummariser } from "./forms.mjs";

const API = "tailmark";

/** pi found nothing to compact, and why. */
export class NothingToCompact extends Error {}

/** Enter the model that waits for the suite into pi's registry. Once for a process. */
export function register(pi) {
  const stream = (model, context) => {
    const answer = pi.createAssistantMessageEventStream();
    const prompt = context.messages.map((message) => message.content.map((block) => block.text).join("")).join("\n");
    model.asked.push({ prompt, answer });
    return answer;
  };
  pi.registerApiProvider({ api: API, stream, streamSimple: stream });
}

/** One compaction that waits for its summary. */
export class Compaction {
  #conversations;
  #session;
  #result;
  #asked;

  /** Prepare it and start it. Throws `NothingToCompact`. */
  constructor(pi, conversations, session, settings, instructions) {
    this.#conversations = conversations;
    this.#session = session;
    const branch = conversations.manager(session).getBranch();
    this.preparation = pi.prepareCompaction(branch, settings);
    if (this.preparation === undefined) {
      throw new NothingToCompact(branch.length === 0 ? "too-few-turns" : "checkpoint-is-leaf");
    }
    this.branch = branch;
    this.previous = pi.getLatestCompactionEntry(branch);
    this.#asked = [];
    const model = { id: API, name: API, api: API, provider: API, reasoning: false, asked: this.#asked };
    this.#result = pi.compact(this.preparation, model, "no key", {}, instructions);
    // It may fail before anybody waits for it; whoever commits hears of it.
    this.#result.catch(() => {});
  }

  /** The plan as the wire has it. */
  plan(id, instructions) {
    const nameOf = (entry) => this.#conversations.nameOf(entry);
    const read = new Set([...this.preparation.messagesToSummarize, ...this.preparation.turnPrefixMessages]);
    const messages = this.branch.filter((entry) => read.has(entry.message)).map((entry) => nameOf(entry.id));
    const summary = this.previous?.summary ?? null;
    const { firstKeptEntryId } = this.preparation;
    const leaf = nameOf(this.branch.at(-1).id);
    return {
      id,
      session: this.#session,
      leaf,
      base: leaf,
      trigger: "manual",
      first_kept: nameOf(firstKeptEntryId),
      old_first_kept: this.previous === null ? null : nameOf(this.previous.firstKeptEntryId),
      previous_checkpoint: this.previous === null ? null : nameOf(this.previous.id),
      previous_summary: summary,
      excluded: messages,
      refresh: this.previous?.firstKeptEntryId === firstKeptEntryId,
      instructions,
      request: {
        previous_summary: this.#carries(summary) ? summary : null,
        messages,
        instructions: instructions !== null && this.#asksFor(`\n\nAdditional focus: ${instructions}`) ? instructions : null,
      },
    };
  }

  /** Whether pi gave the previous summary to the model. Of an empty one there is nothing to give. */
  #carries(summary) {
    return summary === "" || this.#asksFor(`<previous-summary>\n${summary}\n</previous-summary>`);
  }

  /** Whether a text stands in something that pi asked the model. */
  #asksFor(text) {
    return this.#asked.some(({ prompt }) => prompt.includes(text));
  }

  /** Bring the model's reply, to each question that pi asked. Answers the checkpoint's name, or `null` if pi gave up. */
  async commit(reply) {
    const message = answerOfSummariser(reply);
    for (const { answer } of this.#asked) {
      answer.push(
        message.stopReason === "error"
          ? { type: "error", reason: "error", error: message }
          : { type: "done", reason: message.stopReason, message },
      );
    }
    let result;
    try {
      result = await this.#result;
    } catch (error) {
      if (reply.kind === "summary-failure") {
        return null;
      }
      throw error;
    }
    return this.#conversations.appendCompaction(this.#session, result);
  }
}
