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
