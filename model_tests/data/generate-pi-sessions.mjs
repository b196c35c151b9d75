// Writes a small session of the pi coding agent with its own code: two compactions, a branch with a summary, a retry, tool calls.
// Use: node generate-pi-sessions.mjs FOLDER_OF_THE_PACKAGE OUTPUT_FOLDER
// pi-v2.jsonl and its fork were written by the version 0.32.3, pi-v3.jsonl and its fork by 0.63.1. The texts are filler.
import { pathToFileURL } from "node:url";
import { join } from "node:path";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";

const [packageFolder, output] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(join(packageFolder, "dist/core", file)).href);
const { SessionManager } = await load("session-manager.js");
const { prepareCompaction } = await load("compaction/compaction.js");

const filler = (words) => "lorem ipsum dolor sit amet ".repeat(Math.ceil(words / 5)).trim();
const usage = (input, out) => ({
    input, output: out, cacheRead: 0, cacheWrite: 0, totalTokens: input + out,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
});
const user = (words) => ({ role: "user", content: [{ type: "text", text: filler(words) }], timestamp: 0 });
const answer = (words, input, extra = []) => ({
    role: "assistant", api: "filler", provider: "filler", model: "filler-1", timestamp: 0,
    content: [{ type: "text", text: filler(words) }, ...extra],
    usage: usage(input, Math.ceil(words * 1.4)), stopReason: extra.length ? "toolUse" : "stop",
});
const call = (id) => ({ type: "toolCall", id, name: "read", arguments: { path: "notes.txt" } });
const result = (id, words) => ({
    role: "toolResult", toolCallId: id, toolName: "read", isError: false, timestamp: 0,
    content: [{ type: "text", text: filler(words) }],
});

mkdirSync(output, { recursive: true });
const folder = mkdtempSync(join(output, "run-"));
const session = SessionManager.create("/project", folder);
let size = 900;
const say = (message, words) => { size += Math.ceil(words * 1.4); return session.appendMessage(message(words, size)); };

function turn(words) {
    say((w) => user(w), words);
    return say(answer, words * 2);
}
function toolTurn(words, id) {
    say((w) => user(w), words);
    say((w, input) => answer(w, input, [call(id)]), words);
    say((w) => result(id, w), words * 4);
    return say(answer, words);
}
function compact(keep) {
    const settings = { enabled: true, reserveTokens: 1000, keepRecentTokens: keep };
    const plan = prepareCompaction(session.getBranch(), settings);
    if (!plan) throw new Error("nothing to compact");
    session.appendCompaction(filler(30), plan.firstKeptEntryId, plan.tokensBefore);
    size = 900 + keep;
}

session.appendModelChange("filler", "filler-1");
turn(40);
const second = toolTurn(60, "call_1");
turn(50);
compact(300);
turn(40);
const kept = toolTurn(50, "call_2");
// Somebody goes back to an earlier answer, and takes along what the left branch was about.
session.branchWithSummary(second, filler(25));
turn(30);
turn(30);
// A retry: the last answer is left, the question is answered once more.
session.branch(session.getBranch().at(-2).id);
say(answer, 60);
compact(150);
turn(20);
session.branch(kept);
turn(20);
compact(200);
const end = turn(10);

const written = session.getSessionFile();
const version = session.getHeader().version;
copyFileSync(written, join(output, `pi-v${version}.jsonl`));
// A fork is a file of its own that names the one that it was made from.
const fork = session.createBranchedSession(end);
const lines = readFileSync(fork, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
lines[0].parentSession = `pi-v${version}.jsonl`;
writeFileSync(join(output, `pi-v${version}-fork.jsonl`), lines.map((line) => JSON.stringify(line)).join("\n") + "\n");
