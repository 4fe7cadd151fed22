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

export function readable(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
