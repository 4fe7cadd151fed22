import { Bell, BellOff } from "lucide-react";
import { type ReactNode, useState } from "react";
import { permission, type Permission, turnOff, turnOn } from "../shell/notifying";
import { type Push, pushState, turnOffPush, turnOnPush } from "../shell/push";
import { Button } from "../ui/Button";
import { Checkbox } from "../ui/Field";
import { useActWithToast } from "../ui/useAct";
import css from "./me.module.css";

const WORDS: Record<Permission, string> = {
  on: "This browser shows a notification when someone mentions you, when an agent answers you and when one asks you something, while you look at something else.",
  off: "Get a notification when someone mentions you, when an agent answers you and when one asks you something.",
  refused: "This browser blocks notifications from this page. Allow them in the settings of the browser, then reload.",
  impossible: "This browser cannot show notifications here. They need a page that is served over HTTPS or from this machine.",
};

const PUSH_WORDS: Record<Push, string> = {
  on: "They come through the push service of your browser, which cannot read them.",
  off: "They come through the push service of your browser, which cannot read them.",
  "switched off": "Web push is switched off on this server.",
  impossible: "This browser has no push service, or cannot reach it.",
};

/** Whether this browser shows notifications, and whether it does so while no tab is open. */
export function Notifications(): ReactNode {
  const [state, setState] = useState(permission);
  const [push, setPush] = useState(pushState);
  const { busy, run } = useActWithToast();
  const switchPush = async (wanted: boolean): Promise<void> => {
    await run(async () => {
      if (!wanted) await turnOffPush();
      setPush(wanted ? await turnOnPush() : pushState());
    });
  };
  const start = async (): Promise<void> => {
    const now = await turnOn();
    setState(now);
    if (now === "on") await switchPush(true);
  };
  const stop = (): void => {
    setState(turnOff());
    setPush("off");
  };
  return (
    <section className={css.section} aria-labelledby="notifications">
      <div className={css.sectionHead}>
        <h2 id="notifications">Notifications</h2>
        {state === "off" && (
          <Button small icon={<Bell size={16} />} onClick={() => void start()}>
            Turn on notifications
          </Button>
        )}
        {state === "on" && (
          <Button small icon={<BellOff size={16} />} onClick={stop}>
            Turn off notifications
          </Button>
        )}
      </div>
      <p className={css.soft}>{WORDS[state]}</p>
      {state === "on" && (
        <Checkbox
          label="Also while no tab of Denizen is open"
          hint={PUSH_WORDS[push]}
          checked={push === "on"}
          disabled={busy || push === "impossible" || push === "switched off"}
          onChange={(event) => void switchPush(event.target.checked)}
        />
      )}
    </section>
  );
}
