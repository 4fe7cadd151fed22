/** A text as a Markdown quotation, with room to write below it. Long ones are cut. Pure. */
export function quoted(text: string, most = 1_000): string {
  const cut = text.length > most ? `${text.slice(0, most).trimEnd()} …` : text;
  return `${cut.split("\n").map((line) => (line ? `> ${line}` : ">")).join("\n")}\n\n`;
}
