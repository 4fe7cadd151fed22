import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useState } from "react";
import { handleFrom } from "../agents/handles";
import { post, type Schemas } from "../denizen/api";
import { useMe } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import { useRequestKey } from "../denizen/requestKey";
import { AttachButton, ChosenFiles, DropArea } from "../files/Attaching";
import { MOST_FILES, useAttachments } from "../files/useAttachments";
import { dollars, short } from "../ui/amounts";
import { LONGEST, WriteBox } from "../ui/WriteBox";
import css from "./panel.module.css";
import { answered, coloured, useAround, useNamed } from "./usePanel";

const FORETOLD_AFTER_MILLISECONDS = 400;

/** Where one asks. `@` completes an advisor or a group; under it stands who will answer, and what it will cost. */
export function Composer(): ReactNode {
  const { panel } = useAround();
  const store = useStore();
  const me = useMe();
  const named = useNamed();
  const key = useRequestKey();
  const everyone = useMemo(() => addressees(panel.advisors), [panel.advisors]);
  const draft = `draft ${me.id} ${panel.id}`;
  const attachments = useAttachments(draft);
  const ask = async (text: string): Promise<void> => {
    const { ready } = attachments;
    const files = ready.map((each) => each.id);
    const body = { text, files, organizationId: me.organization.id };
    await answered(store, panel.id, () => post("/api/panels/{panel_id}/rounds", { path: { panel_id: panel.id }, body, key: key.for(body) }), (round) => [round]);
    key.renew();
    attachments.clear(ready);
  };
  return (
    <WriteBox
      label={`Message to ${panel.name}`}
      placeholder={`Ask ${panel.name}`}
      draft={draft}
      whom={everyone}
      choice="Address"
      face={(each) => <span className={css.swatch} ref={coloured(each.colour)} aria-hidden />}
      inviting={named === null}
      verb="Ask"
      onSend={ask}
      above={attachments.chosen.length > 0 && <ChosenFiles attachments={attachments} />}
      before={
        <>
          <AttachButton onFiles={attachments.add} />
          <DropArea onFiles={attachments.add} />
        </>
      }
      more={attachments.busy || attachments.chosen.length > MOST_FILES ? null : attachments.ready.length > 0}
      onFiles={attachments.add}
      below={(text) => <Foretold text={text} />}
    />
  );
}

/** Advisors, and the groups that they are in. */
function addressees(advisors: readonly Schemas["AdvisorOut"][]): { id: string; handle: string; name: string; colour: string }[] {
  const groups = [...new Set(advisors.map((each) => each.group).filter(Boolean))];
  return [
    ...advisors.map((each) => ({ id: each.id, handle: each.handle, name: each.name, colour: each.colour })),
    ...groups.map((each) => ({ id: `group ${each}`, handle: handleFrom(each), name: `Everyone of ${each}`, colour: "" })),
  ];
}

/** Who will answer, and what that will cost. */
function Foretold({ text }: { text: string }): ReactNode {
  const { panel } = useAround();
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), FORETOLD_AFTER_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [text]);
  const asked = text !== "" && settled !== "" && settled.length <= LONGEST;
  const query = useQuery({
    queryKey: ["panels", panel.id, "cost", settled],
    queryFn: ({ signal }) => post("/api/panels/{panel_id}/cost", { path: { panel_id: panel.id }, body: { text: settled }, signal }),
    enabled: asked,
    placeholderData: keepPreviousData,
    gcTime: 10_000,
  });
  if (text === "") return panel.advisors.some((each) => each.active) ? "Use @ to ask one advisor or a group." : "No advisors: a plain assistant answers.";
  if (!asked || !query.data) return "…";
  const { advisors, input_tokens, output_tokens, cost_micros, most_micros } = query.data;
  const who = advisors.length <= 3 ? advisors.map((each) => each.name).join(", ") : `${advisors.length} advisors`;
  const tokens = `about ${short(input_tokens + output_tokens)} tokens`;
  if (cost_micros === null) return `${who} · ${tokens}; the price is unknown`;
  if (cost_micros === 0 && !most_micros) return `${who} · ${tokens}, free of charge`;
  return `${who} · about ${dollars(cost_micros / 1_000_000)}, at most ${dollars((most_micros ?? cost_micros) / 1_000_000)}`;
}
