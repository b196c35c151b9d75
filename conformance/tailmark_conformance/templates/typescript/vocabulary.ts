/**
 * The vocabulary of the wire, as far as this template speaks it. A field at its default may be left out, on both sides.
 * All of it: docs/vocabulary.md of tailmark, and as JSON Schemas spec/tailmark/schema/wire.json.
 */

export interface Request {
  id: number;
  method: string;
  params: object;
}

export interface Response {
  jsonrpc: string;
  id: number;
  result?: unknown;
  error?: { code: number; message: string };
}

// Messages.

export type Part =
  | { kind: "text" | "reasoning"; id: string; text: string }
  | { kind: "tool-call"; id: string; call: string; name: string; input: string }
  | { kind: "tool-result"; id: string; call: string; status: string; text: string; preliminary?: boolean }
  | { kind: "image" | "file"; id: string; name: string; media_type: string; data?: string }
  | { kind: "reference"; id: string; item_key: string; title: string; citation: string };

export type Role = "user" | "assistant" | "tool";

export interface Message {
  kind: "message";
  id: string;
  role: Role;
  parts: Part[];
}

// Compactions. What is optional here is hidden by the declaration of the template, or `null` by default.

export interface Plan {
  id: string;
  session: string;
  leaf: string;
  base: string;
  trigger: "manual";
  first_kept: string | null;
  old_first_kept: string | null;
  previous_checkpoint: string | null;
  previous_summary: string | null;
  excluded: string[];
  refresh: boolean;
  budgets: Budgets;
  instructions: string | null;
  request: SummaryRequest | null;
}

export interface SummaryRequest {
  previous_summary: string | null;
  messages: string[];
  instructions?: string;
}

export type Reply =
  | { kind: "summary-answer"; parts: Part[]; finish?: "stop" | "length" | "tool-call" | "other" }
  | { kind: "summary-failure"; text: string };

export interface Checkpoint {
  kind: "checkpoint";
  id: string;
  summary: string;
  first_kept: string | null;
}

// Operations and their outcomes.

export interface Append {
  kind: "append";
  session: string;
  message: Message;
}

export interface BeginCompaction {
  kind: "begin-compaction";
  session: string;
  plan: string;
  instructions?: string;
}

export interface CommitCompaction {
  kind: "commit-compaction";
  plan: Plan;
  reply: Reply | null;
}

export interface Load {
  kind: "load";
  session: string;
}

export type Operation = Append | BeginCompaction | CommitCompaction | Load;

export type Outcome =
  | { kind: "done"; written?: string[] }
  | { kind: "planned"; plan: Plan }
  | { kind: "committed"; checkpoint: string }
  | { kind: "noop"; reason: "too-few-turns" | "checkpoint-is-leaf" }
  | { kind: "skipped"; open_calls: string[]; answer_running: boolean }
  | { kind: "stale"; leaf: string | null; revision: number }
  | { kind: "failed"; reason: "summariser" | "truncated" | "not-text" | "blank" }
  | { kind: "refused"; code: "unknown-session" | "plan" };

// What is shown.

export interface Budgets {
  tail: number | null;
}

export interface ProjectionItem {
  node: string | null;
  role: Role;
  marking: "verbatim" | "context" | "unmarked";
  digest: string;
  estimate: number;
}

export interface SessionView {
  session: string;
  leaf: string | null;
  branch: string[];
  open_calls: { call: string; message: string; approval_pending?: boolean }[];
  running: { follows: string } | null;
  checkpoint: string | null;
  projection: ProjectionItem[];
  budgets: Budgets;
}

export interface StoredNode {
  parent: string | null;
  content: Message | Checkpoint;
  estimate: number;
}

export interface Observation {
  sessions: SessionView[];
  nodes: StoredNode[];
}
