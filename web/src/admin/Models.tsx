import { useQuery, useQueryClient } from "@tanstack/react-query";
import { CircleCheck, Cpu, RotateCw, Server } from "lucide-react";
import { type FormEvent, type ReactNode, useId, useRef, useState } from "react";
import { useModels } from "../agents/ModelField";
import { get, post, put, remove, type Schemas } from "../denizen/api";
import { dollars, whole } from "../ui/amounts";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { Fault } from "../ui/Confirm";
import { Select, TextField } from "../ui/Field";
import { Empty, Loaded } from "../ui/States";
import { useToast } from "../ui/Toast";
import { useAct } from "../ui/useAct";
import css from "./admin.module.css";
import { faultOf, Section } from "./parts";

type List = Schemas["AgentModels"];
type Setup = Schemas["ModelSetupOut"];
type Facts = Schemas["ModelFacts"];
type Provider = Schemas["ProviderOut"];
type Result = Schemas["TestOut"];
type Wanted = Schemas["ChooseModel"];

/** The default model of the server, what was found on its machine, and connecting another one. */
export default function Models(): ReactNode {
  const models = useModels();
  return (
    <Loaded query={models}>
      {(list) => (
        <>
          <Default list={list} />
          {list.may_choose && <Connect list={list} />}
        </>
      )}
    </Loaded>
  );
}

const SOURCES: Record<List["default_source"], string> = {
  configured: "set by the configuration",
  chosen: "chosen here",
  found: "found automatically",
  demo: "built in",
};

function Default({ list }: { list: List }): ReactNode {
  const client = useQueryClient();
  const act = useAct();
  const say = useToast();
  const reset = (): Promise<unknown> =>
    act.run(async () => {
      const now = await remove("/api/models/default", {});
      await client.invalidateQueries({ queryKey: ["models"] });
      say(`The default model is now ${now.default}.`);
    });
  return (
    <Section
      title="Default model"
      about="Used by agents without a model of their own."
      action={
        list.may_choose &&
        list.default_source === "chosen" && (
          <Button small busy={act.busy} onClick={() => void reset()}>
            Choose automatically
          </Button>
        )
      }
    >
      <div className={css.row}>
        <span className={css.words}>
          <code className={css.keyName}>{list.default}</code>
          <span className={css.about}>{list.default_reason}</span>
        </span>
        <Badge tone={list.default_source === "demo" ? "warn" : "good"}>{SOURCES[list.default_source]}</Badge>
      </div>
      {list.default_source === "demo" && <p className={css.about}>The demo model only shows how things work. It does not understand what you write.</p>}
      {list.may_choose && list.default_source === "configured" && (
        <p className={css.about}>
          To choose a model here, remove <code>DENIZEN_MODEL</code> from the environment, <code>model</code> from denizen.toml or <code>--model</code> from the command line, and restart the server.
        </p>
      )}
      {!list.may_choose && <p className={css.about}>Only operators, the owners of the first organization, can choose another one.</p>}
      <Fault error={act.error} />
    </Section>
  );
}

function Connect({ list }: { list: List }): ReactNode {
  const client = useQueryClient();
  const say = useToast();
  const setup = useQuery({
    queryKey: ["models", "setup"],
    queryFn: ({ signal }) => get("/api/models", { query: { setup: true }, signal }).then((told) => told.setup as Setup),
  });
  const fixed = list.default_source === "configured";
  const choose = async (wanted: Wanted): Promise<void> => {
    const now = await put("/api/models/default", { body: wanted });
    await client.invalidateQueries({ queryKey: ["models"] });
    await client.invalidateQueries({ queryKey: ["keys"] });
    say(`The default model is now ${now.default}.`);
  };
  return (
    <Loaded query={setup} lines={8}>
      {({ providers, servers }) => (
        <>
          <Section
            title="Found on this machine"
            about="Model servers that answer on their usual ports on the server's machine."
            action={
              <Button small icon={<RotateCw size={15} />} busy={setup.isFetching} onClick={() => void setup.refetch()}>
                Look again
              </Button>
            }
          >
            {servers.length === 0 ? (
              <Empty title="No model server found" icon={<Server size={28} aria-hidden />}>
                <p>Ollama, llama.cpp, LM Studio and vLLM are found by themselves when they run on this machine.</p>
              </Empty>
            ) : (
              servers.map((server) => <FoundServer key={server.provider} server={server} current={list.default} fixed={fixed} onChoose={choose} />)
            )}
          </Section>
          <Section title="Connect a model" about="Test it first: one call, which costs a few tokens. Keys are stored encrypted and never shown again.">
            <ConnectForm providers={providers} fixed={fixed} onChoose={choose} />
          </Section>
        </>
      )}
    </Loaded>
  );
}

function FoundServer(props: { server: Schemas["LocalServer"]; current: string; fixed: boolean; onChoose: (wanted: Wanted) => Promise<void> }): ReactNode {
  const { server } = props;
  return (
    <div className={css.modelServer}>
      <h3 className={css.modelServerHead}>
        {server.title} <span className={css.faint}>{server.address}</span>
      </h3>
      <ul className={css.rows} aria-label={`Models of ${server.title}`}>
        {server.models.map((model) => (
          <FoundModel key={model.name} {...props} model={model} />
        ))}
      </ul>
    </div>
  );
}

function FoundModel(props: { model: Schemas["LocalModel"]; current: string; fixed: boolean; onChoose: (wanted: Wanted) => Promise<void> }): ReactNode {
  const { model, current } = props;
  const testing = useAct();
  const choosing = useAct();
  const [result, setResult] = useState<Result | null>(null);
  const test = (): Promise<unknown> => {
    setResult(null);
    return testing.run(async () => setResult(await post("/api/models/test", { body: { name: model.name } })));
  };
  return (
    <li className={css.serverModel}>
      <div className={`${css.row} ${css.wrapping}`}>
        <span className={css.words}>
          <code className={css.keyName}>{model.name}</code>
          <FactList facts={model.facts} />
        </span>
        <span className={css.buttons}>
          <Button small busy={testing.busy} onClick={() => void test()} aria-label={`Test ${model.name}`}>
            Test
          </Button>
          {current === model.name ? (
            <Badge tone="good">default</Badge>
          ) : (
            <Button small variant="primary" busy={choosing.busy} disabled={props.fixed} onClick={() => void choosing.run(() => props.onChoose({ name: model.name }))} aria-label={`Use ${model.name}`}>
              Use
            </Button>
          )}
        </span>
      </div>
      <Fault error={testing.error ?? choosing.error} />
      <Outcome result={result} busy={testing.busy} />
    </li>
  );
}

function ConnectForm({ providers, fixed, onChoose }: { providers: Provider[]; fixed: boolean; onChoose: (wanted: Wanted) => Promise<void> }): ReactNode {
  const listId = useId();
  const testing = useAct();
  const choosing = useAct();
  const form = useRef<HTMLFormElement>(null);
  const [chosen, setChosen] = useState(providers[0]?.provider ?? "");
  const [address, setAddress] = useState<string | null>(null);
  const [key, setKey] = useState("");
  const [model, setModel] = useState("");
  const [result, setResult] = useState<Result | null>(null);
  const provider = providers.find((each) => each.provider === chosen);
  if (!provider) return null;
  const where = address ?? provider.address ?? "";
  const moved = provider.takes_address && !provider.address_set_by && where.trim() !== (provider.address ?? "");
  const wanted: Wanted = {
    name: `${provider.provider}:${model.trim()}`,
    ...(moved && { address: where.trim() }),
    ...(key.trim() && { key: key.trim() }),
  };
  const keyUsed = provider.key_kept && !(moved && where.trim());
  const lacking = !model.trim() || (provider.needs_address && !where.trim()) || (provider.needs_key && !keyUsed && !key.trim());
  const error = choosing.error ?? testing.error;
  const turnTo = (name: string): void => {
    setChosen(name);
    setAddress(null);
    setKey("");
    setModel("");
    setResult(null);
    testing.clear();
    choosing.clear();
  };
  const test = (): void => {
    setResult(null);
    choosing.clear();
    void testing.run(async () => setResult(await post("/api/models/test", { body: wanted })));
  };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    testing.clear();
    void choosing.run(async () => {
      await onChoose(wanted);
      setKey("");
      setAddress(null);
    });
  };
  const beside = ["address", "key", "name"].some((field) => faultOf(error, field));
  return (
    <form ref={form} className={css.narrow} onSubmit={submit} noValidate>
      <Select label="Provider" value={chosen} onChange={(event) => turnTo(event.target.value)}>
        <optgroup label="On the internet">{options(providers.filter((each) => !each.needs_address))}</optgroup>
        <optgroup label="Your own server">{options(providers.filter((each) => each.needs_address))}</optgroup>
      </Select>
      {provider.takes_address && (
        <TextField
          label={provider.needs_address ? "Base URL" : "Base URL (optional)"}
          type="url"
          inputMode="url"
          spellCheck={false}
          autoComplete="off"
          placeholder={provider.needs_address ? "http://127.0.0.1:8080/v1" : undefined}
          value={where}
          disabled={provider.address_set_by !== null}
          onChange={(event) => setAddress(event.target.value)}
          error={faultOf(error, "address")}
          hint={addressHint(provider)}
        />
      )}
      {provider.key && (
        <TextField
          label={provider.needs_key ? "API key" : "API key (optional)"}
          type="password"
          autoComplete="off"
          value={key}
          onChange={(event) => setKey(event.target.value)}
          error={faultOf(error, "key")}
          hint={keyUsed || !provider.key_kept ? keyHint(provider) : "Another base URL needs its own key."}
        />
      )}
      <TextField
        label="Model"
        list={listId}
        spellCheck={false}
        autoComplete="off"
        placeholder={shortName(provider.suggestions[0] ?? "") || "Its name on that server"}
        value={model}
        onChange={(event) => setModel(event.target.value)}
        error={faultOf(error, "name")}
      />
      <datalist id={listId}>
        {provider.suggestions.map((each) => (
          <option key={each} value={shortName(each)} />
        ))}
      </datalist>
      {!beside && <Fault error={error} />}
      <Outcome result={result} busy={testing.busy} />
      <div className={css.buttons}>
        <Button busy={testing.busy} disabled={lacking} onClick={test}>
          Test
        </Button>
        <Button type="submit" variant="primary" busy={choosing.busy} disabled={lacking || fixed}>
          Use as default
        </Button>
      </div>
    </form>
  );
}

function options(providers: Provider[]): ReactNode {
  return providers.map((each) => (
    <option key={each.provider} value={each.provider}>
      {each.title}
    </option>
  ));
}

function addressHint(provider: Provider): string {
  if (provider.address_set_by) return `Set by ${provider.address_set_by}.`;
  if (provider.needs_address) return "As the server reaches it, not your browser.";
  return `Only for a proxy or gateway in front of ${provider.title}.`;
}

function keyHint(provider: Provider): string | undefined {
  if (provider.key_kept === "organization") return `${provider.key} is kept. Leave this empty to use it.`;
  if (provider.key_kept === "server") return `${provider.key} is set on the server. Leave this empty to use it.`;
  return `It is kept as ${provider.key}.`;
}

/** The name without its provider. */
function shortName(name: string): string {
  return name.slice(name.indexOf(":") + 1);
}

/** What one test call showed. */
function Outcome({ result, busy }: { result: Result | null; busy: boolean }): ReactNode {
  return (
    <div role="status">
      {busy && <p className={css.about}>Waiting for its answer. A local model may have to load first.</p>}
      {result && !result.ok && <p className={css.testFailed}>{result.problem}</p>}
      {result?.ok && (
        <div className={css.testPassed}>
          <p>
            {result.called_tool ? <CircleCheck size={16} aria-hidden /> : <Cpu size={16} aria-hidden />}
            <strong>
              {result.name} answered in {result.seconds.toFixed(1)} seconds.
            </strong>
          </p>
          <p>
            {result.called_tool ? "It called the tool that it was offered, as agents need to." : "It did not call the tool that it was offered. Agents with this model can talk, but not act."}
            {result.text && ` It wrote: “${result.text.slice(0, 200)}”`}
          </p>
          <p className={css.faint}>
            {whole(result.input_tokens)} tokens in, {whole(result.output_tokens)} out{result.thought ? ", and it thought before it answered" : ""}.
          </p>
          {result.facts && <FactList facts={result.facts} />}
        </div>
      )}
    </div>
  );
}

function FactList({ facts }: { facts: Facts }): ReactNode {
  return (
    <span className={css.facts}>
      <span>{facts.context_tokens === null ? "context unknown" : `${whole(facts.context_tokens)} tokens of context`}</span>
      {facts.tools !== null && <span>{facts.tools ? "tools" : "no tools"}</span>}
      {facts.images !== null && <span>{facts.images ? "images" : "no images"}</span>}
      {facts.thinking !== "unknown" && <span>{THINKING[facts.thinking]}</span>}
      <span>
        {facts.input_price === null ? "price unknown" : `${dollars(facts.input_price)} in, ${dollars(facts.output_price ?? 0)} out per million tokens`}
      </span>
    </span>
  );
}

const THINKING: Record<Exclude<Facts["thinking"], "unknown">, string> = {
  always: "always thinks",
  "by default": "thinks by default",
  "on request": "can think",
  no: "no thinking",
};
