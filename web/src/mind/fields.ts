/** The form of a definition: which fields there are, how each is shown, read and checked, and what was changed. Pure. */

export type Kind = "text" | "long" | "model" | "integer" | "number" | "choice" | "words" | "flag" | "time" | "weekdays" | "json";

export interface FieldSpec {
  /** Where it stands in a definition: `cycle.max_steps`. */
  path: string;
  label: string;
  kind: Kind;
  hint?: string;
  /** What holds where nothing is said. */
  normal?: string;
  choices?: [value: string, label: string][];
  least?: number;
  /** Whether it has a line of its own: a sentence is written there. */
  wide?: boolean;
}

export interface Section {
  id: string;
  title: string;
  about: string;
  fields: FieldSpec[];
  /** The whole section is there or not: `heartbeat`. */
  optional?: { path: string; label: string; hint: string };
}

export const WEEKDAYS = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

export const SECTIONS: Section[] = [
  {
    id: "who",
    title: "Identity",
    about: "What it reads about itself. A change starts a new era with its next cycle.",
    fields: [
      { path: "name", label: "Name", kind: "text" },
      { path: "purpose", label: "Purpose", kind: "text", wide: true, hint: "What it is for, in a line. People see it in lists; the agent does not read it." },
      { path: "a2a", label: "Public A2A card", kind: "flag", normal: "false", hint: "Anybody can read its name and purpose, and programs with a token can give it tasks." },
      { path: "instructions", label: "Instructions", kind: "long", hint: "Its role, in your words." },
      { path: "model", label: "Model", kind: "model", normal: "default", hint: "provider:name, or “default” for the server's model." },
      {
        path: "profile",
        label: "Prompt size",
        kind: "choice",
        normal: "auto",
        hint: "Small: a short prompt with few tools, for small models.",
        choices: [
          ["auto", "Chosen by model"],
          ["normal", "Normal"],
          ["small", "Small"],
        ],
      },
      { path: "pays", label: "Who pays", kind: "text", hint: "The @handle of the person whose key is used. Empty: the organization's key, or the server's." },
      { path: "zone", label: "Time zone", kind: "text", normal: "UTC", hint: "Used for times such as “nine o'clock”." },
    ],
  },
  {
    id: "urgent",
    title: "Urgent messages",
    about: "Urgent messages reach it in the middle of a cycle.",
    fields: [
      { path: "urgent.people", label: "People whose messages are always urgent", kind: "words", hint: "Handles, separated by commas." },
      { path: "urgent.commands", label: "Commands that make a message urgent", kind: "words", normal: "stop, cancel, …", hint: "When said as a command by someone it works for. … stands for words in between." },
      { path: "urgent.words", label: "Words that make a message urgent", kind: "words", hint: "Wherever they stand in a message of someone it works for." },
      { path: "urgent.works_for", label: "People it works for", kind: "words", hint: "Handles. Empty: every person." },
    ],
  },
  {
    id: "cycle",
    title: "Think cycles",
    about: "Limits of one cycle, and what it learns while working.",
    fields: [
      {
        path: "cycle.awareness",
        label: "Awareness",
        kind: "choice",
        normal: "combined",
        hint: "What it learns about events that arrive while it works.",
        choices: [
          ["combined", "Urgent ones, and a preview"],
          ["all", "All of them, in full"],
          ["urgent", "Urgent ones"],
          ["preview", "A preview"],
          ["none", "Nothing"],
        ],
      },
      {
        path: "cycle.silent_reply",
        label: "If someone is left without an answer",
        kind: "choice",
        normal: "nudge",
        choices: [
          ["nudge", "Remind it once, then send what it wrote"],
          ["deliver", "Send what it wrote at once"],
          ["ignore", "Do nothing"],
        ],
      },
      { path: "cycle.max_steps", label: "Maximum steps", kind: "integer", normal: "20", least: 1, hint: "Model calls in one cycle." },
      { path: "cycle.token_budget", label: "Maximum new tokens", kind: "integer", normal: "50000", least: 500, hint: "Tokens written and newly read, without its history." },
      { path: "cycle.max_dollars", label: "Maximum dollars", kind: "number", hint: "Only for models with a known price." },
      { path: "cycle.alert_dollars", label: "Report cycles that cost more than", kind: "number", hint: "In dollars." },
      { path: "cycle.max_seconds", label: "Maximum seconds", kind: "number", hint: "Checked between steps." },
    ],
  },
  {
    id: "window",
    title: "Window and compaction",
    about: "How much of its history the model sees in full, and how the rest is summarized.",
    fields: [
      {
        path: "window.strategy",
        label: "How older cycles are kept",
        kind: "choice",
        normal: "layered",
        hint: "Groups are of ten cycles, a hundred, a thousand.",
        choices: [
          ["layered", "Lines, then groups"],
          ["self_summary", "A line for each"],
          ["semantic", "Groups, and what matters now"],
          ["rolling", "Groups, and a rolling memory"],
          ["written", "Groups, written by a small model"],
        ],
      },
      { path: "window.writer_model", label: "Model that writes about older cycles", kind: "model", hint: "Only if a small model writes them. Empty: the cheap model of the same provider." },
      { path: "window.max_tokens", label: "Most tokens of a request", kind: "integer", normal: "100000", least: 1 },
      { path: "window.target_share", label: "Share full after compaction", kind: "number", normal: "0.6", hint: "Between 0 and 1." },
      { path: "window.min_recent_cycles", label: "Cycles kept in full", kind: "integer", normal: "10", least: 0 },
      { path: "window.layer_share", label: "Share for older cycles", kind: "number", normal: "0.15" },
      { path: "window.inbox_share", label: "Share for one inbox message", kind: "number", normal: "0.1" },
      { path: "window.result_characters", label: "Maximum length of a tool result, in characters", kind: "integer", normal: "16000" },
      { path: "window.context_tokens", label: "Context size of the model, in tokens", kind: "integer", least: 1024, hint: "Only if it differs from what the provider reports." },
      { path: "window.output_tokens", label: "Tokens reserved for the answer", kind: "integer", normal: "8192" },
    ],
  },
  {
    id: "budget",
    title: "Budget",
    about: "Spending limits. Empty: no own limit. A day ends at midnight UTC.",
    fields: [
      { path: "budget.dollars_per_day", label: "Dollars per day", kind: "number" },
      { path: "budget.tokens_per_day", label: "Tokens per day", kind: "integer" },
      { path: "budget.dollars", label: "Dollars in total", kind: "number" },
      { path: "budget.tokens", label: "Tokens in total", kind: "integer" },
    ],
  },
  {
    id: "heartbeat",
    title: "Heartbeat",
    about: "Wakes the agent regularly, even if nothing has happened.",
    optional: { path: "heartbeat", label: "Heartbeat on", hint: "Each heartbeat is a cycle and costs tokens." },
    fields: [
      { path: "heartbeat.every_minutes", label: "Interval in minutes", kind: "integer", least: 1 },
      { path: "heartbeat.active_from", label: "From", kind: "time", normal: "00:00" },
      { path: "heartbeat.active_until", label: "Until", kind: "time", normal: "00:00", hint: "Same as From: all day." },
      { path: "heartbeat.weekdays", label: "On", kind: "weekdays", normal: WEEKDAYS.join(", ") },
      { path: "heartbeat.zone", label: "Time zone of the heartbeat", kind: "text", hint: "Empty: the agent's time zone." },
      { path: "heartbeat.instruction", label: "What it is told", kind: "long", normal: "Look at your goals and plans. If there is nothing to do, skip." },
    ],
  },
  {
    id: "effects",
    title: "Effects",
    about: "What it can do outside this server on its own, and what a person must approve.",
    fields: [
      {
        path: "effects.after_outside_text",
        label: "After it has read text from outside",
        kind: "choice",
        normal: "words",
        hint: "A web page or service may contain instructions that nobody here wants.",
        choices: [
          ["words", "Allow what a person asked for, ask about the rest"],
          ["ask", "Ask about everything"],
          ["allow", "Do everything"],
        ],
      },
      { path: "effects.approval_seconds", label: "Seconds to wait for an approval", kind: "number", normal: "86400", hint: "Then the call is refused." },
      { path: "effects.rules", label: "Rules", kind: "json", hint: 'As JSON; the first that matches a call decides: [{"tool": "send_mail", "arguments": {"to": "*@example.com"}, "do": "allow"}].' },
    ],
  },
  {
    id: "private_guard",
    title: "Privacy",
    about: "Prevents it from repeating messages from private spaces elsewhere.",
    fields: [
      { path: "private_guard.enabled", label: "Check messages before they are sent", kind: "flag", normal: "true" },
      { path: "private_guard.words", label: "Maximum number of words repeated in a row", kind: "integer", normal: "8", least: 1 },
    ],
  },
  {
    id: "more",
    title: "Tools, routing, phases",
    about: "JSON, as in a definition file. Secrets are shown as •••; leave them unchanged to keep them.",
    fields: [
      { path: "tools", label: "Tools", kind: "json", hint: "Names of this server's tools, HTTP requests, questions to people." },
      { path: "mcp", label: "MCP servers", kind: "json", hint: "By a name for each." },
      { path: "skills", label: "Skills", kind: "json", hint: 'By their names: {"refunds": {"description": "…", "text": "…"}}. The agent reads the text when it needs it.' },
      { path: "profiles", label: "Prompt profiles", kind: "json", hint: 'Used in all its conversations: {"preset": "concise"} or {"mode": "ada"}.' },
      { path: "reflection", label: "Reflection", kind: "json", hint: '{"profile": "basic", "model": "…"}; results are under Stance.' },
      { path: "cycle.phases", label: "Phases", kind: "json", hint: 'A list, or "observe-think-respond".' },
      { path: "cycle.stop_when", label: "Additional stop conditions", kind: "json", hint: '["responded_to_all", {"after": "book_hotel"}], or names of conditions defined on this server.' },
      { path: "cycle.prepare_step", label: "Function for each step", kind: "text", hint: "The name of a Python function defined on this server." },
      { path: "cycle.step_models", label: "Models that the function may choose", kind: "words" },
      { path: "cycle.routing", label: "Routing", kind: "json", hint: "Use other models for certain events or steps." },
      {
        path: "cycle.routing_per",
        label: "Choose the model",
        kind: "choice",
        normal: "cycle",
        choices: [
          ["cycle", "Once per cycle"],
          ["step", "Before each step"],
        ],
      },
      { path: "cycle.triage", label: "Triage", kind: "json", normal: '"auto"', hint: 'Decides which events the agent can skip: "auto", "off", or rules and a small model of your own.' },
    ],
  },
];

export const FIELDS: FieldSpec[] = SECTIONS.flatMap((section) => section.fields);

export type Values = Record<string, string | boolean>;
type Tree = { [key: string]: unknown };

/** What the form shows of an agent: texts and flags by path; empty where nothing is said. */
export function valuesOf(name: string, definition: Tree): Values {
  const values: Values = {};
  for (const section of SECTIONS) {
    if (section.optional) values[section.optional.path] = at(definition, section.optional.path) != null;
    for (const field of section.fields) values[field.path] = field.path === "name" ? name : shown(field, at(definition, field.path));
  }
  return values;
}

function at(tree: Tree, path: string): unknown {
  return path.split(".").reduce<unknown>((found, key) => (found as Tree | null | undefined)?.[key], tree);
}

function shown(field: FieldSpec, value: unknown): string | boolean {
  if (field.kind === "flag") return value === undefined ? field.normal === "true" : value === true;
  if (value === undefined || value === null) return field.kind === "choice" || field.kind === "weekdays" ? (field.normal ?? "") : "";
  if (field.kind === "json") return JSON.stringify(value, null, 2);
  if (Array.isArray(value)) return value.join(", ");
  return field.kind === "time" ? String(value).slice(0, 5) : String(value);
}

export interface Read {
  /** As `PATCH /api/agents/{id}` takes it. */
  changes: Tree;
  errors: Record<string, string>;
}

/** What is different from before, and what cannot be read. Whatever is emptied is reset. */
export function read(before: Values, now: Values): Read {
  const changes: Tree = {};
  const errors: Record<string, string> = {};
  for (const section of SECTIONS) {
    const switched = section.optional?.path;
    if (switched && !now[switched]) {
      if (before[switched]) put(changes, switched, null);
      continue;
    }
    for (const field of section.fields) {
      // What has just been switched on is told whole.
      if (now[field.path] === before[field.path] && !(switched && !before[switched] && now[field.path] !== "")) continue;
      const value = parsed(field, now[field.path] ?? "");
      if (value instanceof Error) errors[field.path] = value.message;
      else put(changes, field.path, value);
    }
    if (switched && !now[`${switched}.every_minutes`]) errors[`${switched}.every_minutes`] = "Enter an interval.";
  }
  if (typeof now.name === "string" && !now.name.trim()) errors.name = "Enter a name.";
  return { changes, errors };
}

function parsed(field: FieldSpec, given: string | boolean): unknown {
  if (typeof given === "boolean") return given;
  const text = given.trim();
  if (text === "") return field.path === "name" ? "" : null;
  switch (field.kind) {
    case "integer":
    case "number":
      return numeric(field, text);
    case "words":
    case "weekdays":
      return text.split(",").map((each) => each.trim()).filter(Boolean);
    case "json":
      try {
        return JSON.parse(text);
      } catch {
        return new Error("This is not JSON: check quotes, commas and brackets.");
      }
    case "long":
      return given;
    default:
      return text;
  }
}

function numeric(field: FieldSpec, text: string): number | Error {
  const value = Number(text.replaceAll(/[\s_]/g, ""));
  if (!Number.isFinite(value)) return new Error("Enter a number.");
  if (field.kind === "integer" && !Number.isInteger(value)) return new Error("Enter a whole number.");
  const least = field.least ?? 0;
  return value < least ? new Error(`Must be at least ${least}.`) : value;
}

function put(tree: Tree, path: string, value: unknown): void {
  const keys = path.split(".");
  let inner = tree;
  for (const key of keys.slice(0, -1)) inner = (inner[key] ??= {}) as Tree;
  inner[keys.at(-1)!] = value;
}

/** The server's words beside the fields they are about; `rest` is about none of them. */
export function placed(told: { detail: string; errors: { field: string; message: string }[] }): { errors: Record<string, string>; rest: string | null } {
  const errors: Record<string, string> = {};
  const homeless: string[] = [];
  const found = told.errors.length ? told.errors : [prefixed(told.detail)];
  for (const { field, message } of found) {
    const home = FIELDS.map((each) => each.path)
      .filter((path) => field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`))
      .sort((one, other) => other.length - one.length)[0];
    if (home === undefined) homeless.push(field ? `${field}: ${message}` : message);
    else errors[home] = field === home ? sentence(message) : `${field.slice(home.length + 1)}: ${message}`;
  }
  return { errors, rest: homeless.length ? homeless.join("; ") : null };
}

function prefixed(detail: string): { field: string; message: string } {
  const match = /^([a-z_][\w.[\]]*): (.*)$/s.exec(detail);
  return match ? { field: match[1]!, message: match[2]! } : { field: "", message: detail };
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
