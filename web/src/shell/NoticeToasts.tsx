import { useEffect, useRef } from "react";
import type { Notice } from "../denizen/events";
import { useLive } from "../denizen/live";
import { useToast } from "../ui/Toast";

/** Shows each notice of the stream once, at the edge of the screen. */
export function NoticeToasts(): null {
  const notices = useLive((state) => state.notices);
  const say = useToast();
  const shown = useRef(new WeakSet<Notice>());
  useEffect(() => {
    for (const each of notices) {
      if (shown.current.has(each)) continue;
      shown.current.add(each);
      say(each.text);
    }
  }, [notices, say]);
  return null;
}
