import { TriangleAlert, WifiOff } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import css from "./shell.module.css";

const PATIENCE_MILLISECONDS = 1_200;

/** Says that the connection is lost, once that has lasted a moment: most are back at once. */
export function OfflineBanner(): ReactNode {
  const [shown, setShown] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), PATIENCE_MILLISECONDS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div role="status" className={css.bannerPlace}>
      {shown && (
        <div className={css.banner}>
          <WifiOff size={16} aria-hidden />
          No connection. Your messages are saved and sent when you are back online.
        </div>
      )}
    </div>
  );
}

/** Says that the server is there, and why it does not give what the page needs. */
export function TroubleBanner({ trouble }: { trouble: string }): ReactNode {
  return (
    <div role="status" className={css.bannerPlace}>
      <div className={css.banner}>
        <TriangleAlert size={16} aria-hidden />
        <span>Your spaces cannot be loaded. Trying again every few seconds. {trouble}</span>
      </div>
    </div>
  );
}
