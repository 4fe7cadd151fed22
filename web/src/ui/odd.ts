/** Texts that no person wrote as Markdown, and that take a parser seconds. Found in one pass. */

const LONGEST_LINE = 8_000;
const DEEPEST = 40;
const MOST_MARKS = 800;
const NESTED = new RegExp(`^(?:[ \\t]{0,4}(?:[>*+-]|\\d{1,9}[.)])){${DEEPEST}}`);

/** Whether a line is longer, lists and quotations are deeper, or a paragraph has more marks than anyone writes. */
export function isOdd(text: string): boolean {
  let marks = 0;
  for (const line of text.split("\n")) {
    if (line.length > LONGEST_LINE || NESTED.test(line)) return true;
    marks = line.trim() === "" ? 0 : marks + marksIn(line);
    if (marks > MOST_MARKS) return true;
  }
  return false;
}

function marksIn(line: string): number {
  let count = 0;
  for (const letter of line) if ("*_~`[]<$\\".includes(letter)) count += 1;
  return count;
}
