/** Messages of a model as people read them, from the form in which they are kept (that of Pydantic AI). Pure. */
import type { Schemas } from "../denizen/api";

export type Role = "self" | "user" | "model" | "thinking" | "call" | "result" | "other";

/** One part of a message. */
export interface Part {
  role: Role;
  /** Of a call and its result. */
  tool?: string;
  text: string;
  /** The arguments of a call. */
  arguments?: unknown;
}

export interface ToolCall {
  tool: string;
  arguments: unknown;
  result: string | null;
}

/** What an agent was shown, answered and did in one step. */
export interface Step {
  step: number;
  model: string | null;
  shown: { kind: string; text: string }[];
  text: string;
  thinking: string;
  calls: ToolCall[];
  usage: Schemas["UsageOfCall"] | null;
}

type Loose = Record<string, unknown>;

/** The parts of a message, in their order. What is not known is shown as it is kept. */
export function partsOf(message: unknown): Part[] {
  const parts = (message as Loose | null)?.parts;
  return Array.isArray(parts) ? parts.map((part) => partOf(part as Loose)) : [{ role: "other", text: json(message) }];
}

function partOf(part: Loose): Part {
  const tool = typeof part.tool_name === "string" ? part.tool_name : undefined;
  switch (part.part_kind) {
    case "system-prompt":
      return { role: "self", text: textOf(part.content) };
    case "user-prompt":
      return { role: "user", text: textOf(part.content) };
    case "text":
      return { role: "model", text: textOf(part.content) };
    case "thinking":
      return { role: "thinking", text: textOf(part.content) };
    case "tool-call":
      return { role: "call", tool, text: "", arguments: argumentsOf(part.args) };
    case "tool-return":
    case "retry-prompt":
      return { role: "result", tool, text: textOf(part.content) };
    default:
      return { role: "other", text: json(part) };
  }
}

/** Content is a text, or a list of texts and other things. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (Array.isArray(content) && content.every((each) => typeof each === "string")) return content.join("\n");
  return content === undefined || content === null ? "" : json(content);
}

/** As an object where they are one; models write them as text, and sometimes badly. */
export function argumentsOf(args: unknown): unknown {
  if (typeof args !== "string") return args ?? {};
  try {
    return JSON.parse(args);
  } catch {
    return args;
  }
}

/** A result that is JSON as one reads it, anything else as it is. */
export function readable(text: string): { text: string; json: boolean } {
  if (!/^\s*[[{]/.test(text)) return { text, json: false };
  try {
    return { text: json(JSON.parse(text)), json: true };
  } catch {
    return { text, json: false };
  }
}

export function json(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}

/** The steps of a cycle from its entries in the log; `rest` is what was shown after the last answer. */
export function stepsOf(entries: Schemas["LogEntry"][]): { steps: Step[]; rest: Step["shown"] } {
  const steps: Step[] = [];
  let shown: Step["shown"] = [];
  for (const entry of entries) {
    if (entry.kind === "private") {
      shown.push({ kind: entry.kind, text: `[private, ${entry.private} ${entry.private === 1 ? "entry" : "entries"}]` });
      continue;
    }
    const parts = partsOf(entry.message);
    const last = steps.at(-1);
    if (entry.kind === "response") {
      steps.push({
        step: steps.length,
        model: null,
        shown,
        text: said(parts, "model"),
        thinking: said(parts, "thinking"),
        calls: parts.filter((part) => part.role === "call").map((part) => ({ tool: part.tool ?? "", arguments: part.arguments, result: null })),
        usage: usageOf(entry.message),
      });
      shown = [];
    } else if (entry.kind === "results" && last) {
      // By their places: the ids that providers give to calls repeat.
      last.calls.forEach((call, at) => (call.result = parts[at]?.text ?? null));
    } else {
      shown.push({ kind: entry.kind, text: parts.map((part) => part.text).join("\n") });
    }
  }
  return { steps, rest: shown };
}

function said(parts: Part[], role: Role): string {
  return parts
    .filter((part) => part.role === role)
    .map((part) => part.text)
    .join("\n\n");
}

function usageOf(message: unknown): Step["usage"] {
  const usage = (message as Loose).usage as Loose | undefined;
  if (!usage) return null;
  const count = (name: string): number => (typeof usage[name] === "number" ? usage[name] : 0);
  return {
    input_tokens: count("input_tokens"),
    output_tokens: count("output_tokens"),
    cache_read_tokens: count("cache_read_tokens"),
    cache_write_tokens: count("cache_write_tokens"),
  };
}

/** A line of two texts that stand side by side; null where one of them has nothing to say. */
export interface Row {
  left: string | null;
  right: string | null;
  same: boolean;
}

/** A whole `diff -u`, side by side: what was taken away stands beside what came in its place. */
export function sideBySide(difference: string[]): Row[] {
  const rows: Row[] = [];
  let gone: string[] = [];
  let come: string[] = [];
  const settle = (): void => {
    for (let at = 0; at < Math.max(gone.length, come.length); at += 1) {
      rows.push({ left: gone[at] ?? null, right: come[at] ?? null, same: false });
    }
    gone = [];
    come = [];
  };
  for (const line of difference.slice(difference.findIndex((each) => each.startsWith("@@")) + 1)) {
    if (line.startsWith("-")) gone.push(line.slice(1));
    else if (line.startsWith("+")) come.push(line.slice(1));
    else {
      settle();
      rows.push({ left: line.slice(1), right: line.slice(1), same: true });
    }
  }
  settle();
  return rows;
}
