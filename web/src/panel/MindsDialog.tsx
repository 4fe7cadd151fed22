import { ArrowLeft, ChevronRight, Settings2 } from "lucide-react";
import { type ReactNode, useState } from "react";
import type { Panel, VoiceStance } from "../denizen/api";
import { ofVoice, useVoices } from "../reflection/asking";
import { Stance } from "../reflection/Stance";
import { ownMetaprompts } from "../reflection/timeline";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import { Loaded } from "../ui/States";
import css from "./panel.module.css";
import { coloured, useAround } from "./usePanel";
import { lastWords } from "./words";

interface Props {
  panel: Panel;
  /** Whose is shown first; null: everyone's. */
  start: string | null;
  onSettings: () => void;
  onClose: () => void;
}

/** How the voices of a panel stand to the people in it: everyone, or one of them with all that moved it. */
export function MindsDialog({ panel, start, onSettings, onClose }: Props): ReactNode {
  const [shown, show] = useState(start);
  const voices = useVoices(panel.id);
  const { advisors } = useAround();
  const one = voices.data?.find((each) => each.voice === shown);
  return (
    <Dialog wide title="States of mind" onClose={onClose}>
      {shown !== null && (
        <div>
          <Button small variant="quiet" icon={<ArrowLeft size={15} />} autoFocus data-autofocus onClick={() => show(null)}>
            Everyone
          </Button>
        </div>
      )}
      <Loaded query={voices} lines={8}>
        {(all) => {
          if (shown === null) return <Everyone all={all} onShow={show} onSettings={onSettings} />;
          if (!one) return <p className={css.faint}>No longer an advisor here.</p>;
          return <Stance key={one.voice} place={ofVoice(panel.id, one.voice, one.name, ownMetaprompts(advisors.get(one.voice)?.reflection ?? panel.settings.reflection))} />;
        }}
      </Loaded>
    </Dialog>
  );
}

function Everyone({ all, onShow, onSettings }: { all: VoiceStance[]; onShow: (voice: string) => void; onSettings: () => void }): ReactNode {
  return (
    <>
      <p className={css.faint}>How each advisor reads people's feelings, and how it adapts. Advisors do not see each other's.</p>
      <ul className={css.minds} aria-label="States of mind">
        {all.map((each) => (
          <li key={each.voice}>
            <Row stance={each} onShow={() => onShow(each.voice)} />
          </li>
        ))}
      </ul>
      <div className={css.listFoot}>
        <Button icon={<Settings2 size={16} />} onClick={onSettings}>
          Reflection settings
        </Button>
      </div>
    </>
  );
}

function Row({ stance, onShow }: { stance: VoiceStance; onShow: () => void }): ReactNode {
  const { advisors } = useAround();
  return (
    <button type="button" className={css.mind} ref={coloured(advisors.get(stance.voice)?.colour)} onClick={onShow}>
      <span className={css.swatch} aria-hidden />
      <span className={css.mindWords}>
        <strong>{stance.name}</strong>
        <span className={css.faint} dir="auto">
          {lastWords(stance)}
        </span>
      </span>
      <Badge tone={stance.state.mood === "neutral" ? "plain" : "accent"}>{stance.state.mood}</Badge>
      <ChevronRight size={17} aria-hidden />
    </button>
  );
}
