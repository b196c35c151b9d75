/** Finds the installed package in a folder, and gives the parts of it that the adapter drives. */

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const AGENT = "@mariozechner/pi-coding-agent";
const MODELS = "@mariozechner/pi-ai";

/** What is wrong with the command line, in one line for people. */
export class UsageError extends Error {}

function modulesOf(folder) {
  const modules = join(resolve(folder), "node_modules");
  if (!existsSync(join(modules, AGENT, "package.json"))) {
    throw new UsageError(
      `${AGENT} is not installed in ${folder}: run "npm install --ignore-scripts ${AGENT}@0.63.1" there, or name the folder where it is`,
    );
  }
  return modules;
}

/** The package's modules are named by their files, because its `exports` show only the whole. */
async function imported(root, file) {
  return import(pathToFileURL(join(root, file)).href);
}

/**
 * The package that stands in `folder`/node_modules: its version, its session manager, its compaction, its conversion of
 * messages, and the registry in which a model of one's own is entered. Throws `UsageError` if it is not there.
 */
export async function load(folder) {
  const modules = modulesOf(folder);
  const agent = join(modules, AGENT);
  const nested = join(agent, "node_modules", MODELS);
  const models = existsSync(nested) ? nested : join(modules, MODELS);
  const { version } = JSON.parse(readFileSync(join(agent, "package.json"), "utf8"));
  const [sessions, compaction, messages, ai] = await Promise.all([
    imported(agent, "dist/core/session-manager.js"),
    imported(agent, "dist/core/compaction/compaction.js"),
    imported(agent, "dist/core/messages.js"),
    imported(models, "dist/index.js"),
  ]);
  return {
    version,
    SessionManager: sessions.SessionManager,
    getLatestCompactionEntry: sessions.getLatestCompactionEntry,
    prepareCompaction: compaction.prepareCompaction,
    compact: compaction.compact,
    estimateTokens: compaction.estimateTokens,
    defaultSettings: compaction.DEFAULT_COMPACTION_SETTINGS,
    convertToLlm: messages.convertToLlm,
    registerApiProvider: ai.registerApiProvider,
    createAssistantMessageEventStream: ai.createAssistantMessageEventStream,
  };
}
