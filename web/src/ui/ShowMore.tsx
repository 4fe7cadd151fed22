/** The end of a list that is read page by page. */
import { type ReactNode, useEffect, useRef } from "react";
import { inWords } from "../denizen/api";
import { Button } from "./Button";
import { Skeleton } from "./States";
import css from "./ui.module.css";

/** What it needs of a query. */
interface Pages {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  isFetchNextPageError: boolean;
  error: unknown;
  fetchNextPage: () => unknown;
}

/** A button for the next page; if that could not be read, the reason. */
export function ShowMore({ pages, small }: { pages: Pages; small?: boolean }): ReactNode {
  if (!pages.hasNextPage) return null;
  return (
    <div className={css.showMore}>
      <Button small={small} busy={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
        Show more
      </Button>
      {pages.isFetchNextPageError && !pages.isFetchingNextPage && (
        <p className={css.fieldError} role="alert">
          {inWords(pages.error)}
        </p>
      )}
    </div>
  );
}

/** The same without a button: the next page is read when the end is seen. Only one that failed is asked for by hand. */
export function MoreWhenSeen({ pages }: { pages: Pages }): ReactNode {
  const end = useRef<HTMLDivElement>(null);
  const ask = useRef(pages.fetchNextPage);
  ask.current = pages.fetchNextPage;
  const { hasNextPage: more, isFetchingNextPage: busy, isFetchNextPageError: failed } = pages;
  useEffect(() => {
    if (!more || busy || failed) return;
    const observer = new IntersectionObserver(([entry]) => void (entry?.isIntersecting && ask.current()), { rootMargin: "400px" });
    observer.observe(end.current!);
    return () => observer.disconnect();
  }, [more, busy, failed]);
  if (!more) return null;
  return <div ref={end}>{busy ? <Skeleton lines={3} /> : failed && <ShowMore pages={pages} />}</div>;
}
