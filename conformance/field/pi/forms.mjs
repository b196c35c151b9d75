/**
 * Messages in two forms: the suite's and pi's.
 *
 * What pi has a place for goes into pi's message and is read back from there alone. What it has no place for is the row
 * that stands beside it in the adapter's table: the ids of message and parts, an image's name, how the answer ended where
 * the suite says nothing of it, the leaf that its request was built on, and what a usage says besides figures.
 * Parts that pi does not know (files, references and their like) are a text of their fields, as pi does with files.
 */

import { createHash } from "node:crypto";

const API = "tailmark";

/** The fields of the parts that pi keeps as a text, in the order of the vocabulary. */
const AS_TEXT = {
  file: ["name", "media_type", "data"],
  reference: ["item_key", "title", "citation"],
  "pdf-page": ["attachment", "page", "pages"],
  "epub-location": ["section_index", "href", "cfi"],
  annotation: ["annotation_key", "text", "comment", "page", "parent_item_key"],
  collection: ["collection_id", "label"],
  tag: ["tag_id", "label"],
};

const STOP_OF_END = { final: "stop", failed: "error", aborted: "aborted" };

/** A value without the fields that are at their default, which is how the wire and its digests have it. */
function trimmed(value, defaults) {
  return Object.fromEntries(Object.entries(value).filter(([name, field]) => field !== defaults[name]));
}

const LEFT_OUT = {
  file: { data: "" },
  image: { data: "" },
  reasoning: { replayable: false },
  usage: { cached: 0, output: 0, reasoning_output: 0, scope: "last-request", model: "", ended_normally: true },
  message: { end: null, built_on: null, usage: null },
};

/** The sixteen digits that stand for a value (docs/wire.md, `observe`). */
export function digestOf(value) {
  return createHash("sha256").update(JSON.stringify(value), "utf8").digest("hex").slice(0, 16);
}

// To pi ------------------------------------------------------------------------------------------------------

function blockOf(part) {
  switch (part.kind) {
    case "text":
      return { type: "text", text: part.text };
    case "image":
      return { type: "image", data: part.data ?? "", mimeType: part.media_type };
    case "reasoning":
      return { type: "thinking", thinking: part.text, ...(part.replayable ? { thinkingSignature: "signed" } : {}) };
    case "tool-call":
      return { type: "toolCall", id: part.call, name: part.name, arguments: { input: part.input } };
    default: {
      const fields = AS_TEXT[part.kind];
      if (fields === undefined) {
        throw new Error(`a part of the kind '${part.kind}' is declared as lacking`);
      }
      return { type: "text", text: JSON.stringify(Object.fromEntries(fields.map((name) => [name, part[name] ?? ""]))) };
    }
  }
}

function rowOf(message) {
  return {
    id: message.id,
    parts: message.parts.map((part) => ({
      kind: part.kind,
      id: part.id,
      ...(part.kind === "image" ? { name: part.name } : {}),
    })),
    end: message.end ?? null,
    built_on: message.built_on ?? null,
    usage:
      message.usage == null
        ? null
        : {
            reasoning_output: message.usage.reasoning_output ?? 0,
            scope: message.usage.scope ?? "last-request",
            ended_normally: message.usage.ended_normally ?? true,
          },
  };
}

function usageOf(usage) {
  const cached = usage?.cached ?? 0;
  const [input, output] = [(usage?.input ?? 0) - cached, usage?.output ?? 0];
  return {
    input,
    output,
    cacheRead: cached,
    cacheWrite: 0,
    totalTokens: input + output + cached,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
  };
}

/** pi's message for one of the suite's, and the row beside it. `nameOfCall` tells the tool of a call that was made before. */
export function toPi(message, nameOfCall) {
  const row = rowOf(message);
  const timestamp = Date.now();
  switch (message.role) {
    case "user":
      return [{ role: "user", content: message.parts.map(blockOf), timestamp }, row];
    case "assistant": {
      const content = message.parts.map(blockOf);
      const calls = content.some((block) => block.type === "toolCall");
      return [
        {
          role: "assistant",
          content,
          api: API,
          provider: API,
          model: message.usage?.model ?? "",
          usage: usageOf(message.usage),
          stopReason: STOP_OF_END[message.end] ?? (calls ? "toolUse" : "stop"),
          timestamp,
        },
        row,
      ];
    }
    case "tool": {
      const [result, ...more] = message.parts;
      if (result?.kind !== "tool-result" || more.length > 0) {
        throw new Error("a tool message with anything but one result is declared as lacking");
      }
      return [
        {
          role: "toolResult",
          toolCallId: result.call,
          toolName: nameOfCall(result.call),
          content: [{ type: "text", text: result.text }],
          details: { status: result.status },
          isError: result.status !== "output",
          timestamp,
        },
        row,
      ];
    }
    default:
      throw new Error(`there is no role '${message.role}'`);
  }
}

// From pi ----------------------------------------------------------------------------------------------------

function partOf(block, row) {
  const { kind, id } = row;
  switch (kind) {
    case "text":
      return { kind, id, text: block.text };
    case "image":
      return trimmed({ kind, id, name: row.name, media_type: block.mimeType, data: block.data }, LEFT_OUT.image);
    case "reasoning":
      return trimmed(
        { kind, id, text: block.thinking, replayable: block.thinkingSignature !== undefined },
        LEFT_OUT.reasoning,
      );
    case "tool-call":
      return { kind, id, call: block.id, name: block.name, input: block.arguments.input };
    default: {
      const fields = JSON.parse(block.text);
      const ordered = Object.fromEntries(AS_TEXT[kind].map((name) => [name, fields[name]]));
      return trimmed({ kind, id, ...ordered }, LEFT_OUT[kind] ?? {});
    }
  }
}

function usageFrom(message, row) {
  const { usage } = message;
  return trimmed(
    {
      input: usage.input + usage.cacheRead,
      cached: usage.cacheRead,
      output: usage.output,
      reasoning_output: row.reasoning_output,
      scope: row.scope,
      model: message.model,
      ended_normally: row.ended_normally,
    },
    LEFT_OUT.usage,
  );
}

function endFrom(message, row) {
  // pi has no answer whose end is unknown.
  const told = Object.entries(STOP_OF_END).find(([, reason]) => reason === message.stopReason);
  return row.end === null ? null : (told?.[0] ?? null);
}

function partsFrom(message, row) {
  if (message.role === "toolResult") {
    const [{ id }] = row.parts;
    const text = message.content.map((block) => block.text).join("");
    return [{ kind: "tool-result", id, call: message.toolCallId, status: message.details.status, text }];
  }
  if (message.content.length !== row.parts.length) {
    throw new Error(`${row.id}: expected ${row.parts.length} blocks in pi's message, found ${message.content.length}`);
  }
  return message.content.map((block, index) => partOf(block, row.parts[index]));
}

/** The suite's message for one of pi's, with the row that stands beside it. Fields stand in the order of the vocabulary. */
export function fromPi(message, row) {
  const role = message.role === "toolResult" ? "tool" : message.role;
  const answers = message.role === "assistant";
  return trimmed(
    {
      kind: "message",
      id: row.id,
      role,
      parts: partsFrom(message, row),
      end: answers ? endFrom(message, row) : null,
      built_on: row.built_on,
      usage: answers && row.usage !== null ? usageFrom(message, row.usage) : null,
    },
    LEFT_OUT.message,
  );
}

const STOP_OF_FINISH = { stop: "stop", length: "length", "tool-call": "toolUse", other: "stop" };

/** What a summarising model answers in pi's form: an assistant message, or one that says that it failed. */
export function answerOfSummariser(reply) {
  const failed = reply.kind === "summary-failure";
  return {
    role: "assistant",
    content: failed ? [] : reply.parts.map(blockOf),
    api: API,
    provider: API,
    model: API,
    usage: usageOf(null),
    stopReason: failed ? "error" : STOP_OF_FINISH[reply.finish ?? "stop"],
    ...(failed ? { errorMessage: reply.text } : {}),
    timestamp: Date.now(),
  };
}
