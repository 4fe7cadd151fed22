import { useEffect } from "react";
import { useLocation } from "wouter";
import { useStore } from "../denizen/live";
import { newsOf } from "./news";
import { clearShown, installWorker, isAnyLookedAt, permission, show, showLooking } from "./notifying";
import { renewPush } from "./push";
import { addUnseen, clearUnseen } from "./unseen";

const LATER_MILLISECONDS = 5_000;

type FromWorker = { type: "go"; path: string };

/** Tells of mentions, answers and questions while nobody looks at the page: by a number in its title, and as the person chose. */
export function Notifier(): null {
  const store = useStore();
  const [, go] = useLocation();
  useEffect(
    () =>
      store.onEvent((event) => {
        const news = newsOf(event, store.getState());
        if (news === null) return;
        void isAnyLookedAt().then((looked) => {
          if (!looked && addUnseen(news.tag) && permission() === "on") void show(news);
        });
      }),
    [store],
  );
  useEffect(
    () =>
      showLooking((looked) => {
        if (!looked) return;
        clearUnseen();
        void clearShown();
      }),
    [],
  );
  useEffect(() => {
    // When the page has nothing better to do.
    const timer = setTimeout(() => void installWorker().then(renewPush), LATER_MILLISECONDS);
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => {
    const hear = ({ data }: MessageEvent<FromWorker>): void => {
      if (data.type === "go") go(data.path);
    };
    navigator.serviceWorker?.addEventListener("message", hear);
    return () => navigator.serviceWorker?.removeEventListener("message", hear);
  }, [go]);
  return null;
}
