import type { ReactNode } from "react";
import { MoreWhenSeen } from "../ui/ShowMore";
import { Empty, Loaded } from "../ui/States";
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
            <MoreWhenSeen pages={life} />
          </div>
        )
      }
    </Loaded>
  );
}
