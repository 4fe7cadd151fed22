/** What a conversation came to: its summary, what is remembered of it, and what may be. */
import { type ReactNode, startTransition, useOptimistic, useState } from "react";
import { Link } from "wouter";
import { inWords, type Schemas } from "../denizen/api";
import { Badge } from "../ui/Badge";
import { Dialog } from "../ui/Dialog";
import { Checkbox } from "../ui/Field";
import { Markdown } from "../ui/Markdown";
import { OutsideLabel } from "../ui/OutsideLabel";
import { Empty, Loaded } from "../ui/States";
import { Tabs } from "../ui/Tabs";
import { Time } from "../ui/Time";
import { type Settled, useCame, useMemories, useSettle, useSwitches } from "./asking";
import { MemoryList } from "./MemoryList";
import css from "./memory.module.css";
import { categoryName, counted, type Item, itemsOf } from "./words";

type Came = Schemas["ConversationMemory"];
type Part = "summary" | "memories" | "policy";

export default function Conversation({ space, name, last, onClose }: { space: string; name: string; last: number; onClose: () => void }): ReactNode {
  const [part, setPart] = useState<Part>("summary");
  const came = useCame(space);
  const tabs = [
    { id: "summary" as const, label: "Summary" },
    { id: "memories" as const, label: "Memories" },
    { id: "policy" as const, label: "Settings" },
  ];
  return (
    <Dialog title={`Summary of ${name}`} onClose={onClose} wide>
      <Tabs label="Conversation summary" tabs={tabs} current={part} onChange={setPart}>
        <div className={css.part}>
          {part === "memories" ? <Learned space={space} /> : <Loaded query={came}>{(told) => (part === "summary" ? <Summary came={told} last={last} onLeave={onClose} /> : <Policy came={told} />)}</Loaded>}
        </div>
      </Tabs>
    </Dialog>
  );
}

/** Whoever follows a link to a message leaves the dialog, by `onLeave`. */
function Summary({ came, last, onLeave }: { came: Came; last: number; onLeave: () => void }): ReactNode {
  if (came.upto === 0) {
    return (
      <Empty title="No summary yet.">
        <p>When the conversation has grown enough, a small model writes a summary here in the background.</p>
      </Empty>
    );
  }
  const { groups, tags } = itemsOf(came.memory_json);
  const after = Math.max(last - came.upto, 0);
  return (
    <>
      <p className={css.meta}>
        <span>
          up to <Link href={`/s/${came.space_id}/m/${came.upto}`} onClick={onLeave}>
            message {came.upto}
          </Link>
        </span>
        <span>{after === 0 ? "no messages since" : `${counted(after, "message", "messages")} since`}</span>
        {came.updated_at && (
          <span>
            written <Time value={came.updated_at} form="ago" />
          </span>
        )}
        {came.outside && <OutsideLabel />}
      </p>
      <div className={css.summary}>
        <Markdown text={came.summary_markdown} />
      </div>
      {groups.map(([category, items]) => (
        <section key={category} className={css.group} aria-label={categoryName(category)}>
          <h3 className={css.groupHead}>
            {categoryName(category)} <span className={css.count}>{items.length}</span>
          </h3>
          <ul className={css.items}>
            {items.map((each) => (
              <ItemRow key={each.text} item={each} space={came.space_id} onLeave={onLeave} />
            ))}
          </ul>
        </section>
      ))}
      {tags.length > 0 && (
        <p className={css.tags} aria-label="Tags">
          {tags.map((each) => (
            <Badge key={each}>{each}</Badge>
          ))}
        </p>
      )}
    </>
  );
}

function ItemRow({ item, space, onLeave }: { item: Item; space: string; onLeave: () => void }): ReactNode {
  return (
    <li dir="auto">
      {item.text}{" "}
      <span className={css.sources}>
        {item.confidence < 1 && <span>{Math.round(item.confidence * 100)}% sure</span>}
        {item.sources.map((seq) => (
          <Link key={seq} href={`/s/${space}/m/${seq}`} aria-label={`Message ${seq}`} title={`Message ${seq}`} onClick={onLeave}>
            {seq}
          </Link>
        ))}
      </span>
    </li>
  );
}

function Learned({ space }: { space: string }): ReactNode {
  const query = useMemories({ of: "space", space });
  return (
    <>
      <p className={css.about}>Memories of this conversation. Agents recall them here only.</p>
      <MemoryList
        query={query}
        changeable
        empty={
          <Empty title="No memories yet.">
            <p>They are created with the summary.</p>
          </Empty>
        }
      />
    </>
  );
}

type ScopeName = "conversation" | "user" | "persona" | "organization";
const SCOPES: { name: ScopeName; label: string; hint: string; usual: boolean }[] = [
  { name: "conversation", label: "This conversation", hint: "Recalled here, for its members.", usual: true },
  { name: "user", label: "Personal", hint: "Private to each person, used when they talk to agents alone.", usual: true },
  { name: "persona", label: "Between a person and an agent", hint: "Only for the two of them.", usual: true },
  { name: "organization", label: "Organization", hint: "Recalled for everyone; stored only if sharing is on.", usual: false },
];

/** What may be remembered of this conversation, and brought back to it. It holds from the next message on. */
function Policy({ came }: { came: Came }): ReactNode {
  const settle = useSettle(came.space_id);
  const switches = useSwitches();
  // Shown at once, and taken back if the server refuses.
  const [policy, show] = useOptimistic(came.policy, (now, { scopes, ...others }: Settled) => ({ ...now, ...others, scopes: { ...now.scopes, ...scopes } }));
  const on = policy.enabled !== false;
  const off = (name: ScopeName): boolean => switches.data !== undefined && !(switches.data.enabled && switches.data[name]);
  const change = (body: Settled): void =>
    startTransition(async () => {
      show(body);
      // What went wrong is told below.
      await settle.mutateAsync(body).catch(() => undefined);
    });
  return (
    <div className={css.form}>
      <Checkbox
        label="Long-term memory for this conversation"
        hint="Off: nothing from here is remembered elsewhere, and agents recall nothing here. The summary is still written."
        checked={on}
        onChange={(event) => change({ enabled: event.target.checked })}
      />
      <fieldset className={css.scopes} disabled={!on}>
        <legend className={css.legend}>Memory scopes</legend>
        {SCOPES.map(({ name, label, hint, usual }) => (
          <Checkbox
            key={name}
            label={label}
            hint={off(name) ? "Switched off for everyone by an admin." : hint}
            disabled={off(name)}
            checked={!off(name) && (policy.scopes[name] ?? usual)}
            onChange={(event) => change({ scopes: { [name]: event.target.checked } })}
          />
        ))}
        <Checkbox
          label="Share with the organization"
          hint="Publishes what admins and owners say here for everyone. Other members' messages are not published."
          checked={policy.share_with_organization === true}
          disabled={off("organization") || switches.data?.publish === false}
          onChange={(event) => change({ share_with_organization: event.target.checked })}
        />
      </fieldset>
      {settle.error && (
        <p role="alert" className={css.fault}>
          {inWords(settle.error)}
        </p>
      )}
      <p className={css.about}>These settings apply to everyone in the conversation.</p>
    </div>
  );
}
