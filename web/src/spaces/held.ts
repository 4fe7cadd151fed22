/** What the reader looks at stays where it is, whatever comes, goes or grows around it. */
import type { Span } from "./rows";

/** The rows on the screen, the uppermost first, and how far below its upper edge each stands. */
export type Held = { row: Element; top: number }[];

export function spansOf(rows: HTMLCollection, box: Element): Span[] {
  const edge = box.getBoundingClientRect().top;
  return Array.from(rows, (row) => {
    const { top, bottom } = row.getBoundingClientRect();
    return { top: top - edge, bottom: bottom - edge };
  });
}

export function hold(rows: HTMLCollection, spans: Span[], height: number): Held {
  const first = spans.findIndex((span) => span.bottom > 0);
  if (first < 0) return [];
  const end = spans.findIndex((span) => span.top >= height);
  return Array.from(rows)
    .slice(first, end < 0 ? undefined : end)
    .map((row, index) => ({ row, top: spans[first + index]!.top }));
}

/** The uppermost of them that is still there stands where it stood. */
export function putBack(held: Held, box: Element): void {
  const first = held.find(({ row }) => row.isConnected);
  if (first === undefined) return;
  const moved = first.row.getBoundingClientRect().top - box.getBoundingClientRect().top - first.top;
  if (moved !== 0) box.scrollTop += moved;
}
