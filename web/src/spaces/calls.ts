/** Tool calls in words. */

/** What a call asks: the text that its arguments say it with, or all of them. */
export function question(given: unknown): string {
  if (typeof given === "string") return given;
  if (given !== null && typeof given === "object") {
    const fields = given as Record<string, unknown>;
    for (const name of ["question", "message", "prompt", "text", "action", "title"]) {
      const said = fields[name];
      if (typeof said === "string" && said.trim()) return said;
    }
    const texts = Object.values(fields).filter((each) => typeof each === "string");
    if (texts.length === 1) return texts[0] as string;
  }
  return `\`\`\`json\n${readable(given)}\n\`\`\``;
}

/** Characters that nobody sees, or that turn the direction of the text: what is approved must be what is read. */
const UNSEEN = /[\p{Cf}\p{Co}\p{Cn}\p{Variation_Selector}\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]/gu;

/** The arguments of a call, with every character in sight. */
export function readable(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
  return text.replace(UNSEEN, (each) => `\\u{${each.codePointAt(0)!.toString(16)}}`);
}

export type FormValues = Record<string, string | number | boolean>;

/** A field of the form with which an MCP server asks for values. */
export interface FormField {
  name: string;
  label: string;
  hint?: string;
  kind: "text" | "number" | "boolean" | "choice";
  whole: boolean;
  required: boolean;
  choices: { value: string; label: string }[];
  initial: string | number | boolean;
}

/** The fields of a form, from its JSON Schema: flat, as the protocol has them. */
export function formFields(form: unknown): FormField[] {
  const schema = asRecord(form);
  const required = Array.isArray(schema.required) ? schema.required : [];
  return Object.entries(asRecord(schema.properties)).map(([name, given]) => {
    const field = asRecord(given);
    const choices = choicesOf(field);
    const whole = field.type === "integer";
    const kind = choices.length ? "choice" : whole || field.type === "number" ? "number" : field.type === "boolean" ? "boolean" : "text";
    const initial = field.default;
    const known = typeof initial === "string" || typeof initial === "number" || typeof initial === "boolean";
    return {
      name,
      label: typeof field.title === "string" ? field.title : name,
      hint: typeof field.description === "string" ? field.description : undefined,
      kind,
      whole,
      required: required.includes(name),
      choices,
      initial: known ? initial : kind === "boolean" ? false : "",
    };
  });
}

function choicesOf(field: Record<string, unknown>): { value: string; label: string }[] {
  if (Array.isArray(field.oneOf)) {
    return field.oneOf.map(asRecord).map((each) => ({ value: String(each.const), label: String(each.title ?? each.const) }));
  }
  const names = Array.isArray(field.enumNames) ? field.enumNames : [];
  return Array.isArray(field.enum) ? field.enum.map((each, at) => ({ value: String(each), label: String(names[at] ?? each) })) : [];
}

function asRecord(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === "object" ? (value as Record<string, unknown>) : {};
}
