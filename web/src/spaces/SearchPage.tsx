import { useInfiniteQuery } from "@tanstack/react-query";
import { Search } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { Link, useLocation, useSearchParams } from "wouter";
import { get, type Message } from "../denizen/api";
import { useNamesakes, useSpaces } from "../denizen/hooks";
import { Page } from "../shell/Page";
import { Avatar } from "../ui/Avatar";
import { Button } from "../ui/Button";
import { Select, TextField } from "../ui/Field";
import { ShowMore } from "../ui/ShowMore";
import { Empty, ErrorState, Skeleton } from "../ui/States";
import { Time } from "../ui/Time";
import { excerpt } from "./excerpt";
import css from "./search.module.css";

/** Finds what was said in the spaces one is in. What is looked for stands in the address. */
export default function SearchPage(): ReactNode {
  const [params] = useSearchParams();
  const [, go] = useLocation();
  const spaces = useSpaces() ?? [];
  const hints = useNamesakes();
  const names = new Map(spaces.map(({ info }) => [info.id, hints.has(info.id) ? `${info.name} (${hints.get(info.id)})` : info.name]));
  const q = params.get("q") ?? "";
  const space = params.get("space") ?? "";
  const [typed, setTyped] = useState(q);

  const look = (words: string, where: string): void => {
    const next = new URLSearchParams();
    if (words.trim()) next.set("q", words.trim());
    if (where) next.set("space", where);
    go(`/search?${next}`, { replace: true });
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    look(typed, space);
  };
  return (
    <Page title="Search">
      <form role="search" className={css.form} onSubmit={submit}>
        <TextField label="Words" type="search" autoFocus value={typed} onChange={(event) => setTyped(event.target.value)} placeholder="tea kettle" />
        <Select label="Where" value={space} onChange={(event) => look(typed, event.target.value)}>
          <option value="">Everywhere</option>
          {[...names].map(([id, name]) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </Select>
        <Button variant="primary" type="submit" icon={<Search size={16} />}>
          Search
        </Button>
      </form>
      {q ? <Found q={q} space={space} names={names} /> : <Empty title="Search messages">Finds messages that contain all words, newest first.</Empty>}
    </Page>
  );
}

function Found({ q, space, names }: { q: string; space: string; names: ReadonlyMap<string, string> }): ReactNode {
  const found = useInfiniteQuery({
    queryKey: ["search", q, space],
    queryFn: ({ pageParam, signal }) =>
      get("/api/messages/search", { query: { q, space: space || undefined, before: pageParam, limit: 30 }, signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });
  if (found.error) return <ErrorState error={found.error} onRetry={() => void found.refetch()} />;
  if (!found.data) return <Skeleton lines={9} label="Searching" />;
  const messages = found.data.pages.flatMap((page) => page.messages);
  return (
    <>
      {messages.length === 0 && !found.hasNextPage && (
        <Empty title="No results.">
          <p>Only whole words match: “plan” does not find “explanation”.</p>
        </Empty>
      )}
      <ul className={css.results} aria-label="Results">
        {messages.map((message) => (
          <li key={message.id}>
            <Result message={message} where={names.get(message.space_id) ?? ""} q={q} />
          </li>
        ))}
      </ul>
      <ShowMore pages={found} />
    </>
  );
}

function Result({ message, where, q }: { message: Message; where: string; q: string }): ReactNode {
  return (
    <Link href={`/s/${message.space_id}/m/${message.seq}`} className={css.result}>
      <Avatar name={message.author.name} id={message.author.id} kind={message.author.kind} />
      <span className={css.words}>
        <span className={css.head}>
          <strong>{message.author.name}</strong>
          <span>in {where}</span>
          <Time value={message.created_at} />
        </span>
        <span className={css.text} dir="auto">
          {excerpt(message.plain, q).map((part, index) => (part.hit ? <mark key={index}>{part.text}</mark> : part.text))}
        </span>
      </span>
    </Link>
  );
}
