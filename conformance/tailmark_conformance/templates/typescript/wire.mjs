// @ts-check
/**
 * The wire: JSON-RPC 2.0 on stdin and stdout, one message a line. Nothing in this file has to be changed.
 *
 * @import { Request, Response } from "./vocabulary.ts"
 */

import { createHash } from "node:crypto";

/** The version of the protocol that this file speaks. */
export const PROTOCOL = 1;

/** The codes of errors. Bad input is an outcome; an error says that the adapter itself has a fault. */
const METHOD_NOT_FOUND = -32601;
const FAILED = -32000;

/** @typedef {Record<string, (parameters: any) => unknown>} Methods */ // any: each method has parameters of its own

/**
 * Answer each line with a line, until `shutdown` or the end of the lines. Methods may answer promises.
 *
 * @param {Methods} methods
 */
export async function serve(methods) {
  const answer = process.stdout.write.bind(process.stdout);
  // Stdout belongs to the wire. Whatever is printed goes to stderr, whose end is shown when something fails.
  process.stdout.write = process.stderr.write.bind(process.stderr);
  for await (const line of lines()) {
    const asked = JSON.parse(line);
    // A list is a batch: the suite asks for an operation and the observation behind it at once.
    /** @type {Request[]} */
    const batch = Array.isArray(asked) ? asked : [asked];
    const responses = [];
    for (const request of batch) {
      responses.push(await responseTo(methods, request));
    }
    answer(JSON.stringify(Array.isArray(asked) ? responses : responses[0]) + "\n");
    if (batch.some((request) => request.method === "shutdown")) {
      return;
    }
  }
}

/**
 * What stands for the content of a message, or for the text of a summary, in a projection.
 *
 * @param {unknown} value
 */
export function digest(value) {
  // The suite sends fields in the order of the vocabulary, without those at their default, and objects keep that order.
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 16);
}

/** The lines of stdin. Node's own reader of lines also ends them where a text has a line separator in it. */
async function* lines() {
  let rest = "";
  process.stdin.setEncoding("utf8");
  for await (const piece of process.stdin) {
    const parts = (rest + piece).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
}

/**
 * @param {Methods} methods
 * @param {Request} request
 * @returns {Promise<Response>}
 */
async function responseTo(methods, request) {
  const head = { jsonrpc: "2.0", id: request.id };
  const method = methods[request.method];
  if (method === undefined) {
    return { ...head, error: { code: METHOD_NOT_FOUND, message: `no method ${request.method}` } };
  }
  try {
    return { ...head, result: await method(request.params) };
  } catch (error) {
    // The suite reports it with the operations that led to it, and the stack is on stderr.
    console.error(error);
    return { ...head, error: { code: FAILED, message: String(error) } };
  }
}
