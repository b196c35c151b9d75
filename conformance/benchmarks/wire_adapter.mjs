// An adapter that does nothing, as fast as Node can: it reads and writes with system calls and waits for nothing else.
// It answers each request with the smallest result of its method, and a list of requests with a list of responses.
import { readSync, writeSync } from "node:fs";

const DECLARATION = { implementation: "nothing", capabilities: ["view", "history"] };
const NOTHING = { sessions: [], nodes: [] };

let whole = true;

function result(request) {
  switch (request.method) {
    case "initialize":
      return { protocol: 1, declaration: DECLARATION };
    case "reset":
      whole = true;
      return {};
    case "perform":
      return { outcome: { kind: "done", written: [request.params.operation.message.id] } };
    case "observe":
      if (whole) {
        whole = false;
        return { observation: NOTHING };
      }
      return { change: {} };
    default:
      return {};
  }
}

function response(request) {
  return { jsonrpc: "2.0", id: request.id, result: result(request) };
}

function write(line) {
  const bytes = Buffer.from(line);
  let written = 0;
  while (written < bytes.length) {
    written += writeSync(1, bytes, written);
  }
}

const piece = Buffer.allocUnsafe(1 << 16);
let rest = Buffer.alloc(0);

for (;;) {
  const count = readSync(0, piece);
  if (count === 0) {
    break;
  }
  rest = rest.length === 0 ? Buffer.from(piece.subarray(0, count)) : Buffer.concat([rest, piece.subarray(0, count)]);
  let end = rest.indexOf(10);
  while (end >= 0) {
    const asked = JSON.parse(rest.toString("utf8", 0, end));
    rest = rest.subarray(end + 1);
    write(JSON.stringify(Array.isArray(asked) ? asked.map(response) : response(asked)) + "\n");
    if (asked.method === "shutdown") {
      process.exit(0);
    }
    end = rest.indexOf(10);
  }
}
