/**
 * The loop of the wire: JSON-RPC 2.0, one message a line, answers in the order of the requests (docs/wire.md).
 *
 * It knows nothing of what is checked. Methods get the parameters and answer the result, or a promise of it.
 */

import { createInterface } from "node:readline";

const PARSE_ERROR = -32700;
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const METHOD_FAILED = -32000;

/** The response to one request. What a method throws becomes an error with its text. */
async function responseTo(request, methods) {
  const id = request?.id ?? null;
  const failed = (code, message) => ({ jsonrpc: "2.0", id, error: { code, message } });
  if (request?.jsonrpc !== "2.0" || typeof request.method !== "string") {
    return failed(INVALID_REQUEST, 'expected an object with "jsonrpc": "2.0" and a method');
  }
  if (!Object.hasOwn(methods, request.method)) {
    const known = Object.keys(methods).join(", ");
    return failed(METHOD_NOT_FOUND, `unknown method '${request.method}'; there are ${known}`);
  }
  try {
    return { jsonrpc: "2.0", id, result: await methods[request.method](request.params ?? {}) };
  } catch (error) {
    return failed(METHOD_FAILED, error instanceof Error ? (error.stack ?? error.message) : String(error));
  }
}

/** The answer to one line: a response, or of a batch a list of responses in its order. */
export async function answerTo(line, methods) {
  let asked;
  try {
    asked = JSON.parse(line);
  } catch (error) {
    return { jsonrpc: "2.0", id: null, error: { code: PARSE_ERROR, message: error.message } };
  }
  if (!Array.isArray(asked)) {
    return responseTo(asked, methods);
  }
  const responses = [];
  for (const request of asked) {
    responses.push(await responseTo(request, methods));
  }
  return responses;
}

/** Answer every line of `input` on `output`, until `shutdown` was answered or the lines end. */
export async function serve(methods, input, output) {
  for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
    const answer = await answerTo(line, methods);
    output.write(`${JSON.stringify(answer)}\n`);
    if (JSON.parse(line)?.method === "shutdown") {
      return;
    }
  }
}
