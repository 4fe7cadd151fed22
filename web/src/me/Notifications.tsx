import { Bell, BellOff } from "lucide-react";
import { type ReactNode, useState } from "react";
import { permission, type Permission, turnOff, turnOn } from "../shell/notifying";
import { Button } from "../ui/Button";
import css from "./me.module.css";

const WORDS: Record<Permission, string> = {
  on: "This browser shows a notification when someone mentions you, when an agent answers you and when one asks you something, while a tab of Denizen is open and you look at something else.",
  off: "Get a notification when someone mentions you, when an agent answers you and when one asks you something.",
  refused: "This browser blocks notifications from this page. Allow them in the settings of the browser, then reload.",
  impossible: "This browser cannot show notifications here. They need a page that is served over HTTPS or from this machine.",
};

/** Whether this browser shows notifications. */
export function Notifications(): ReactNode {
  const [state, setState] = useState(permission);
  return (
    <section className={css.section} aria-labelledby="notifications">
      <div className={css.sectionHead}>
        <h2 id="notifications">Notifications</h2>
        {state === "off" && (
          <Button small icon={<Bell size={16} />} onClick={() => void turnOn().then(setState)}>
            Turn on notifications
          </Button>
        )}
        {state === "on" && (
          <Button small icon={<BellOff size={16} />} onClick={() => setState(turnOff())}>
            Turn off notifications
          </Button>
        )}
      </div>
      <p className={css.soft}>{WORDS[state]}</p>
    </section>
  );
}
