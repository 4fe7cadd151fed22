/** A text, parted into prose and fenced code. One pass over its lines, however broken it is. */

export interface Part {
  text: string;
  /** What stands between the fences. */
  code?: string;
  language?: string;
}

const OPENS = /^ {0,3}(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$/;

/** Prose and code in turn. A fence that is never closed goes to the end, as text that is still being written does. */
export function split(text: string): Part[] {
  const parts: Part[] = [];
  let prose: string[] = [];
  let fence: { mark: string; language?: string; lines: string[] } | null = null;
  const endProse = (): void => {
    if (prose.some((line) => line.trim())) parts.push({ text: prose.join("\n") });
    prose = [];
  };
  const endFence = (): void => {
    if (fence) parts.push({ text: "", code: fence.lines.join("\n"), language: fence.language });
    fence = null;
  };
  for (const line of text.split("\n")) {
    if (fence !== null) {
      const { mark, lines }: { mark: string; lines: string[] } = fence;
      const trimmed = line.trim();
      if (trimmed.length >= mark.length && trimmed === mark[0]!.repeat(trimmed.length)) endFence();
      else lines.push(line);
      continue;
    }
    const opened = OPENS.exec(line);
    if (opened) {
      endProse();
      fence = { mark: opened[1]!, language: opened[2]?.toLowerCase() || undefined, lines: [] };
    } else prose.push(line);
  }
  endProse();
  endFence();
  return parts.length ? parts : [{ text }];
}
