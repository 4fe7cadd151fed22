/** What the reader looks at stays where it is, whatever comes, goes or grows around it. */
import type { Span } from "./rows";

/** The rows on the screen, the uppermost first. */
export interface Held {
  /** How far the list was scrolled when the rows were measured. */
  scrollTop: number;
  /** `top` is measured from the beginning of the list, so that scrolling does not change it. */
  rows: { row: Element; top: number }[];
}

export const NOTHING_HELD: Held = { scrollTop: 0, rows: [] };

export function spansOf(rows: HTMLCollection, box: Element): Span[] {
  const edge = box.getBoundingClientRect().top;
  return Array.from(rows, (row) => {
    const { top, bottom } = row.getBoundingClientRect();
    return { top: top - edge, bottom: bottom - edge };
  });
}

export function hold(rows: HTMLCollection, spans: Span[], box: Element): Held {
  const { scrollTop, clientHeight } = box;
  const first = spans.findIndex((span) => span.bottom > 0);
  if (first < 0) return { scrollTop, rows: [] };
  const end = spans.findIndex((span) => span.top >= clientHeight);
  const onScreen = Array.from(rows).slice(first, end < 0 ? undefined : end);
  return { scrollTop, rows: onScreen.map((row, index) => ({ row, top: spans[first + index]!.top + scrollTop })) };
}

/**
 * The list is scrolled by as much as its content has shifted. The browser may have scrolled it further since it was
 * measured, because its scroll event comes later: that is the reader's doing, and it stays.
 */
export function putBack({ scrollTop, rows }: Held, box: Element): void {
  const first = rows.find(({ row }) => row.isConnected);
  if (first === undefined) return;
  const now = box.scrollTop;
  const shifted = first.row.getBoundingClientRect().top - box.getBoundingClientRect().top + now - first.top;
  // Where the list became shorter than it was scrolled, the browser has stopped at its new end: not the reader's doing.
  const cut = now < scrollTop && !scrolledUp(scrollTop, box);
  const wanted = (cut ? scrollTop : now) + shifted;
  if (wanted !== now) box.scrollTop = wanted;
}

/** Whether the reader has scrolled up from there. */
export function scrolledUp(from: number, box: Element): boolean {
  return box.scrollTop < from && box.scrollTop + box.clientHeight < box.scrollHeight - 1;
}
