import { type ReactNode, useEffect, useRef } from "react";
import { Button } from "../ui/Button";
import { Empty, Loaded, Skeleton } from "../ui/States";
import { dayKey, Time } from "../ui/Time";
import { useLife } from "./asking";
import css from "./mind.module.css";
import { byDay, key } from "./pages";
import { CycleRow } from "./parts";
import { useMind } from "./watch";

/** All of its cycles, day by day, the newest first, as far back as one scrolls. */
export function LifeTab({ at }: { at: string }): ReactNode {
  const { agent, watched } = useMind();
  const life = useLife(agent.id, `${watched.endings} ${watched.open?.id ?? ""}`);
  const days = life.data ? byDay(life.data.pages, dayKey) : [];
  return (
    <Loaded query={life} lines={14}>
      {() =>
        days.length === 0 ? (
          <Empty title="No cycles yet.">
            <p>Send it a message in a space it is in to start its first cycle.</p>
          </Empty>
        ) : (
          <div className={css.life}>
            {days.map((day) => (
              <section key={day.day} className={css.day} aria-labelledby={`day-${day.day}`}>
                <h2 id={`day-${day.day}`} className={css.dayHead}>
                  <Time value={day.at} form="day" />
                </h2>
                <div className={css.timeline}>
                  {day.cycles.map((cycle) => (
                    <CycleRow key={key(cycle)} cycle={cycle} at={at} />
                  ))}
                </div>
              </section>
            ))}
            {life.data?.pages.some((page) => !page.complete) && (
              <p className={css.aside}>Many cycles were skipped in this period; some of them may be missing here.</p>
            )}
            <More more={life.hasNextPage} busy={life.isFetchingNextPage} failed={life.isFetchNextPageError} onMore={() => void life.fetchNextPage()} />
          </div>
        )
      }
    </Loaded>
  );
}

/** The end of a list that goes on: it asks for more when it is seen. */
export function More({ more, busy, failed, onMore }: { more: boolean; busy: boolean; failed?: boolean; onMore: () => void }): ReactNode {
  const end = useRef<HTMLDivElement>(null);
  const ask = useRef(onMore);
  ask.current = onMore;
  useEffect(() => {
    if (!more || busy || failed) return;
    const observer = new IntersectionObserver(([entry]) => entry?.isIntersecting && ask.current(), { rootMargin: "400px" });
    observer.observe(end.current!);
    return () => observer.disconnect();
  }, [more, busy, failed]);
  if (!more) return null;
  return (
    <div ref={end}>
      {busy ? <Skeleton lines={3} /> : failed && <Button onClick={onMore}>Load more</Button>}
    </div>
  );
}
