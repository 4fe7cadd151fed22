import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { get, inWords, post, type Schemas } from "../denizen/api";
import { useEntities, useMe, useSpaces } from "../denizen/hooks";
import { usePaused } from "../shell/paused";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Fault } from "../ui/Confirm";
import { Dialog, DialogFoot } from "../ui/Dialog";
import { Checkbox, Select, TextField } from "../ui/Field";
import { ShowMore } from "../ui/ShowMore";
import { Empty, Loaded } from "../ui/States";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import { useAct } from "../ui/useAct";
import css from "./admin.module.css";
import { Section } from "./parts";

type Receipt = Schemas["ReceiptOut"];
type Wanted = Schemas["Forget"];
type Kind = Wanted["kind"];

const ID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;
const KINDS: Record<Kind, string> = { message: "A message", person: "A person", space: "A space", memory: "A memory" };

/** Tables by what people call them; the others as they are. */
const PLACES: Record<string, string> = {
  log: "entries in agents' logs",
  passages: "passages that agents can recall",
  events: "events in inboxes",
  layers: "summaries of past cycles",
  entities: "people",
};

/** Letting something be gone everywhere: looked at first, then done, with a receipt. */
export default function Forgetting(): ReactNode {
  return (
    <>
      <Section
        title="Forget"
        about="Removes it everywhere: from spaces, from agents' histories, from everything they can recall. This cannot be undone, so preview it first."
      >
        <Ask />
      </Section>
      <Receipts />
    </>
  );
}

function Ask(): ReactNode {
  const me = useMe();
  const act = useAct();
  const entities = useEntities();
  const spaces = useSpaces();
  const [kind, setKind] = useState<Kind>("message");
  const [id, setId] = useState("");
  const [replies, setReplies] = useState(false);
  const [looked, setLooked] = useState<{ wanted: Wanted; receipt: Receipt } | null>(null);
  const owner = me.role === "owner";
  const look = (event: FormEvent): void => {
    event.preventDefault();
    const wanted: Wanted = { kind, id, also_replies: kind === "message" && replies, dry_run: true };
    void act.run(async () => setLooked({ wanted, receipt: await post("/api/forget", { body: wanted }) }));
  };
  const choose = (next: Kind): void => {
    setKind(next);
    setId("");
    act.clear();
  };
  return (
    <form className={css.narrow} onSubmit={look}>
      <Select label="Kind" value={kind} onChange={(event) => choose(event.target.value as Kind)} hint={!owner && "Only owners can forget people and spaces."}>
        {(Object.keys(KINDS) as Kind[])
          .filter((each) => owner || each === "message")
          .map((each) => (
            <option key={each} value={each}>
              {KINDS[each]}
            </option>
          ))}
      </Select>
      {kind === "message" && (
        <>
          <FindMessage chosen={id} onChoose={setId} />
          <Checkbox label="Also remove agents' answers to it" hint="Including the cycles that produced them." checked={replies} onChange={(event) => setReplies(event.target.checked)} />
        </>
      )}
      {kind === "person" && (
        <Select label="Person" required value={id} onChange={(event) => setId(event.target.value)}>
          <option value="">Choose…</option>
          {entities.data
            ?.filter((each) => each.kind === "human")
            .map((each) => (
              <option key={each.id} value={each.id}>
                {each.name} (@{each.handle})
              </option>
            ))}
        </Select>
      )}
      {kind === "space" && (
        <Select label="Which one" required value={id} onChange={(event) => setId(event.target.value)}>
          <option value="">Choose…</option>
          {spaces?.map(({ info }) => (
            <option key={info.id} value={info.id}>
              {info.name}
            </option>
          ))}
        </Select>
      )}
      <Fault error={act.error} />
      <div>
        <Button type="submit" busy={act.busy} disabled={!id.trim()}>
          Preview
        </Button>
      </div>
      {looked && <Decide {...looked} onClose={() => setLooked(null)} />}
    </form>
  );
}

function Decide({ wanted, receipt, onClose }: { wanted: Wanted; receipt: Receipt; onClose: () => void }): ReactNode {
  const client = useQueryClient();
  const say = useToast();
  const act = useAct();
  const [word, setWord] = useState("");
  const forget = (): void =>
    void act
      .run(async () => {
        await post("/api/forget", { body: { ...wanted, dry_run: false } });
        await client.invalidateQueries();
      })
      .then((done) => {
        if (!done) return;
        say("Forgotten. The receipt is below.");
        onClose();
      });
  return (
    <Dialog title={`Forget ${KINDS[wanted.kind].toLowerCase()}?`} onClose={onClose}>
      <p className={css.about}>This is what would be removed or changed. Nothing has been changed yet.</p>
      <Removed removed={receipt.removed} />
      <TextField label="Type “forget” to confirm" autoComplete="off" value={word} onChange={(event) => setWord(event.target.value)} />
      <Fault error={act.error} />
      <DialogFoot onCancel={onClose}>
        <Button variant="danger" busy={act.busy} disabled={word.trim().toLowerCase() !== "forget"} onClick={forget}>
          Forget permanently
        </Button>
      </DialogFoot>
    </Dialog>
  );
}

function Receipts(): ReactNode {
  const entities = useEntities();
  const receipts = useInfiniteQuery({
    queryKey: ["receipts"],
    queryFn: ({ pageParam, signal }) => get("/api/receipts", { query: { before: pageParam ?? undefined, limit: 20 }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
  const name = (id: string | null): string => entities.data?.find((each) => each.id === id)?.name ?? "someone";
  return (
    <Section title="Receipts" about="What was removed and where, never its content.">
      <Loaded query={{ ...receipts, data: receipts.data }} lines={3}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.receipts);
          if (all.length === 0) return <Empty title="Nothing forgotten yet." />;
          return (
            <>
              <ul className={css.rows} aria-label="Receipts">
                {all.map((each) => (
                  <li key={each.id} className={css.receipt}>
                    <details>
                      <summary>
                        <Badge>{each.kind}</Badge> {each.kind === "expired" ? "messages removed" : <>forgotten by {name(each.by_id)}</>} · <Time value={each.created_at} form="ago" />
                      </summary>
                      <Removed removed={each.removed} />
                      <p className={css.faint}>
                        Receipt <code>{each.id}</code>
                      </p>
                    </details>
                  </li>
                ))}
              </ul>
              <ShowMore small pages={receipts} />
            </>
          );
        }}
      </Loaded>
    </Section>
  );
}

function Removed({ removed }: { removed: Record<string, number> }): ReactNode {
  const rows = Object.entries(removed).filter(([, count]) => count > 0);
  if (rows.length === 0) return <p className={css.faint}>Nothing to remove: it is already gone.</p>;
  return (
    <dl className={css.removed}>
      {rows.map(([table, count]) => (
        <div key={table}>
          <dt>{PLACES[table] ?? table.replaceAll("_", " ")}</dt>
          <dd>{count.toLocaleString()}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A message by some of its words, in the spaces one is in, or by its id, wherever it was said. */
function FindMessage({ chosen, onChoose }: { chosen: string; onChoose: (id: string) => void }): ReactNode {
  const spaces = useSpaces();
  const [typed, setTyped] = useState("");
  const words = usePaused(typed.trim());
  const isId = ID.test(words);
  const search = useQuery({
    queryKey: ["search", words, "forgetting"],
    enabled: words.length >= 2 && !isId,
    queryFn: ({ signal }) => get("/api/messages/search", { query: { q: words, limit: 10 }, signal }).then((told) => told.messages),
  });
  const type = (text: string): void => {
    setTyped(text);
    onChoose(ID.exec(text)?.[0] ?? "");
  };
  return (
    <>
      <TextField
        label="Text of the message, or its ID"
        value={typed}
        autoComplete="off"
        onChange={(event) => type(event.target.value)}
        error={search.error ? inWords(search.error) : undefined}
        hint="Text is searched in your spaces; an ID is found everywhere."
      />
      {!isId && search.data?.length === 0 && <p className={css.faint}>No message found in your spaces.</p>}
      {!isId && search.data && search.data.length > 0 && (
        <fieldset className={css.found}>
          <legend className="visually-hidden">Which message</legend>
          {search.data.map((each) => (
            <label key={each.id}>
              <input type="radio" name="message" checked={chosen === each.id} onChange={() => onChoose(each.id)} />
              <span>
                <span className={css.foundText}>{each.plain}</span>
                <span className={css.faint}>
                  {each.author.name} in {spaces?.find(({ info }) => info.id === each.space_id)?.info.name ?? "a space"}, <Time value={each.created_at} />
                </span>
              </span>
            </label>
          ))}
        </fieldset>
      )}
    </>
  );
}
