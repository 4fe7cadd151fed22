import { useQuery } from "@tanstack/react-query";
import { Bot, Brain, Hash, Keyboard, LogOut, MessageSquareText, Moon, Plus, ScanEye, Search, Settings2, Sun, UserRound, UsersRound } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { useLocation } from "wouter";
import { useTalk } from "../agents/talking";
import { get, inWords, post } from "../denizen/api";
import { useAgents, useEntities, useIsAdmin, useMe, useNamesakes, useSpaces } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import { Avatar, STATUS_WORDS } from "../ui/Avatar";
import { useToast } from "../ui/Toast";
import { type Entry, grouped, ranked } from "./paletteRanking";
import css from "./palette.module.css";
import { usePaused } from "./paused";
import { isDirect } from "./Sidebar";
import { Keys } from "./Shortcuts";
import { type Command, SHORTCUTS } from "./shortcutKeys";
import { signOut } from "./signOut";
import { chooseTheme } from "./theme";

interface Choice extends Entry {
  icon: ReactNode;
  run: () => void;
  command?: Command;
}

/** Everything one can go to or do, found by a few letters. */
export function Palette({ onClose, onCommand }: { onClose: () => void; onCommand: (command: Command) => void }): ReactNode {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const known = useChoices(onCommand);
  const found = useFound(typed.trim());
  const listed = useMemo(() => grouped([...ranked(typed, known), ...found]), [typed, known, found]);
  const flat = useMemo(() => listed.flatMap(([, entries]) => entries), [listed]);
  const chosen = flat[Math.min(at, flat.length - 1)];

  useEffect(() => {
    const before = document.activeElement;
    dialog.current!.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  useEffect(() => {
    if (chosen) document.getElementById(`${id}-${chosen.id}`)?.scrollIntoView({ block: "nearest" });
  }, [chosen, id]);

  const choose = (entry: Choice): void => {
    onClose();
    entry.run();
  };
  const press = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" || (event.ctrlKey && event.key === "n") ? 1 : event.key === "ArrowUp" || (event.ctrlKey && event.key === "p") ? -1 : 0;
    if (step !== 0 && flat.length > 0) {
      event.preventDefault();
      setAt((Math.min(at, flat.length - 1) + step + flat.length) % flat.length);
    } else if (event.key === "Enter" && chosen && !event.nativeEvent.isComposing) {
      event.preventDefault();
      choose(chosen);
    } else if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      onClose();
    }
  };
  return (
    <dialog
      ref={dialog}
      className={css.palette}
      aria-label="Find anything"
      onKeyDown={press}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div className={css.box}>
        <div className={css.line}>
          <Search size={18} aria-hidden />
          <input
            autoFocus
            role="combobox"
            aria-label="Find spaces, people, agents, actions and messages"
            aria-expanded
            aria-controls={`${id}-list`}
            aria-activedescendant={chosen ? `${id}-${chosen.id}` : undefined}
            aria-autocomplete="list"
            placeholder="Search or run a command…"
            autoComplete="off"
            spellCheck={false}
            value={typed}
            onChange={(event) => {
              setTyped(event.target.value);
              setAt(0);
            }}
          />
          <kbd>Esc</kbd>
        </div>
        <div id={`${id}-list`} role="listbox" aria-label="Found" className={css.list}>
          {listed.map(([group, entries]) => (
            <div key={group} role="group" aria-label={group} className={css.group}>
              <div className={css.groupName} aria-hidden>
                {group}
              </div>
              {entries.map((entry) => (
                <Option key={entry.id} id={`${id}-${entry.id}`} entry={entry} chosen={entry === chosen} onPoint={() => setAt(flat.indexOf(entry))} onChoose={() => choose(entry)} />
              ))}
            </div>
          ))}
        </div>
        {flat.length === 0 && <p className={css.nothing}>No results.</p>}
        <div role="status" className="visually-hidden">
          {typed && `${flat.length} found`}
        </div>
      </div>
    </dialog>
  );
}

function Option(props: { id: string; entry: Choice; chosen: boolean; onPoint: () => void; onChoose: () => void }): ReactNode {
  const { entry } = props;
  const shortcut = SHORTCUTS.find((each) => each.command === entry.command);
  return (
    <div
      id={props.id}
      role="option"
      aria-selected={props.chosen}
      className={css.option}
      // By moving, not by being under the pointer when the list changes.
      onMouseMove={props.onPoint}
      onClick={props.onChoose}
    >
      {entry.icon}
      <span className={css.optionTitle}>{entry.title}</span>
      {entry.hint && <span className={css.optionHint}>{entry.hint}</span>}
      {shortcut && (
        <span className={css.optionKeys} aria-hidden>
          <Keys shortcut={shortcut} />
        </span>
      )}
    </div>
  );
}

/** All that is known without asking for it by words. */
function useChoices(command: (command: Command) => void): Choice[] {
  const me = useMe();
  const admin = useIsAdmin();
  const spaces = useSpaces();
  const hints = useNamesakes();
  const agents = useAgents();
  const entities = useEntities();
  const talk = useTalk();
  const meet = useMeet();
  const [, go] = useLocation();
  return useMemo(() => {
    const places: Choice[] = (spaces ?? [])
      .filter((each) => !isDirect(each, me.id))
      .map(({ info }) => ({ id: info.id, group: "Spaces", title: info.name, hint: hints.get(info.id), icon: info.kind === "panel" ? <UsersRound size={18} /> : <Hash size={18} />, run: () => go(`/s/${info.id}`) }));
    const talks: Choice[] = (agents.data ?? []).map((each) => ({
      id: each.id,
      group: "Agents",
      title: each.name,
      hint: `@${each.handle} · ${STATUS_WORDS[each.status]}`,
      words: `${each.handle},talk to ${each.name}`,
      icon: <Avatar name={each.name} id={each.id} kind="agent" size="small" />,
      run: () => void talk(each.id),
    }));
    const minds: Choice[] = !admin
      ? []
      : (agents.data ?? []).map((each) => ({
          id: `mind-${each.id}`,
          group: "Actions",
          title: `Open the mind of ${each.name}`,
          words: `mind of ${each.name}`,
          icon: <ScanEye size={18} />,
          run: () => go(`/agents/${each.id}/now`),
        }));
    const people: Choice[] = (entities.data ?? [])
      .filter((each) => each.kind === "human" && each.id !== me.id)
      .map((each) => ({
        id: each.id,
        group: "People",
        title: each.name,
        hint: `@${each.handle}`,
        icon: <Avatar name={each.name} id={each.id} kind="human" size="small" />,
        run: () => void meet(each),
      }));
    return [...places, ...talks, ...people, ...actions(admin, command, go), ...minds];
  }, [spaces, hints, agents.data, entities.data, me.id, admin, command, go, talk, meet]);
}

function actions(admin: boolean, command: (command: Command) => void, go: (path: string) => void): Choice[] {
  const of = (what: Command, title: string, icon: ReactNode, words = ""): Choice => ({ id: what.replace(" ", "-"), group: "Actions", title, icon, words, command: what, run: () => command(what) });
  const to = (path: string, title: string, words = ""): Choice => ({ id: path.replaceAll("/", "-"), group: "Actions", title, words, icon: <Settings2 size={18} />, run: () => go(path) });
  const theme = (id: "light" | "dark" | "system", title: string): Choice => ({
    id: `theme-${id}`,
    group: "Actions",
    title,
    words: "theme,colours,mode",
    icon: id === "dark" ? <Moon size={18} /> : <Sun size={18} />,
    run: () => chooseTheme(id),
  });
  const forAdmins = [
    of("new agent", "Create an agent", <Plus size={18} />, "new agent,create agent"),
    of("administration", "Administration: people", <Settings2 size={18} />, "people,members,invite"),
    to("/admin/tokens", "Administration: tokens", "tokens,access"),
    to("/admin/keys", "Administration: keys", "keys,provider,api key"),
    to("/admin/budgets", "Administration: budgets", "budgets,limits"),
    of("usage", "Administration: usage", <Settings2 size={18} />, "usage,cost,spending"),
    to("/admin/health", "Administration: health", "health,alerts,instances"),
    to("/admin/settings", "Administration: organization", "organization,settings,name"),
    to("/admin/profiles", "Administration: profiles", "profiles,presets,prompts,rules"),
    to("/admin/memory", "Administration: memory", "memory,remember,report,switches"),
    to("/admin/audit", "Administration: audit log", "audit,log,changes,history"),
    to("/admin/forgetting", "Administration: forgetting", "forget,delete,receipts"),
  ];
  return [
    of("new space", "Create a space", <Plus size={18} />, "new space,create space"),
    of("agents", "Agents", <Bot size={18} />),
    { ...to("/memory/you", "Memory", "memories,remembered,forget"), icon: <Brain size={18} /> },
    ...(admin ? forAdmins : []),
    of("me", "You", <UserRound size={18} />, "me,profile,account"),
    of("help", "Shortcuts", <Keyboard size={18} />, "help,keyboard,keys"),
    theme("light", "Light theme"),
    theme("dark", "Dark theme"),
    theme("system", "System colours"),
    { id: "sign-out", group: "Actions", title: "Sign out", words: "log out,leave", icon: <LogOut size={18} />, run: () => void signOut() },
  ];
}

/** Messages that have the words, once one has paused in typing; and the way to all of them. */
function useFound(typed: string): Choice[] {
  const [, go] = useLocation();
  const spaces = useSpaces();
  const words = usePaused(typed);
  const search = useQuery({
    queryKey: ["search", words, "palette"],
    enabled: words.length >= 2,
    queryFn: ({ signal }) => get("/api/messages/search", { query: { q: words, limit: 5 }, signal }),
    staleTime: 15_000,
    retry: false,
  });
  return useMemo(() => {
    if (typed.length < 2) return [];
    const messages: Choice[] = (typed === words ? (search.data?.messages ?? []) : []).map((each) => ({
      id: each.id,
      group: "Messages",
      title: each.plain.replace(/\s+/g, " ").slice(0, 120),
      hint: `${each.author.name} in ${spaces?.find(({ info }) => info.id === each.space_id)?.info.name ?? "a space"}`,
      icon: <MessageSquareText size={18} />,
      run: () => go(`/s/${each.space_id}/m/${each.seq}`),
    }));
    return [...messages, { id: "search-all", group: "Messages", title: `Search messages for “${typed}”`, icon: <Search size={18} />, run: () => go(`/search?q=${encodeURIComponent(typed)}`) }];
  }, [typed, words, search.data, spaces, go]);
}

/** A function that leads into the space of the person and someone else, which is opened if there is none. */
function useMeet(): (who: { id: string; name: string }) => Promise<void> {
  const me = useMe();
  const spaces = useSpaces();
  const store = useStore();
  const say = useToast();
  const [, go] = useLocation();
  return async (who) => {
    const known = spaces?.find((each) => isDirect(each, me.id) && each.info.members.some((member) => member.id === who.id));
    if (known) return go(`/s/${known.info.id}`);
    try {
      const space = await post("/api/spaces", { body: { name: `${me.name} and ${who.name}`.slice(0, 120), members: [who.id], private: true } });
      store.dispatch({ type: "space", space });
      go(`/s/${space.id}`);
    } catch (error) {
      say(inWords(error));
    }
  };
}
