"""A small agent server on LangGraph, as its documentation would have one build it. Runs in the peer's environment.

    python server.py PORT DATABASE MODEL

`POST /ask` with a number, a thread and a text answers when the agent has. A request that is repeated, because its
connection broke, resumes the thread at its last checkpoint, or returns the answer that is there already. Every step is
checkpointed before the next begins (`durability="sync"`). Tools are given a key that stays the same when a step is run
again.
"""

from __future__ import annotations

import json
import operator
import sqlite3
import sys
import threading
import urllib.request
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver  # pyright: ignore[reportMissingImports]
from langgraph.graph import END, START, StateGraph  # pyright: ignore[reportMissingImports]


class State(TypedDict):
    messages: Annotated[list[dict[str, Any]], operator.add]


class Agent:
    """One graph for all threads: think, use tools, think again."""

    def __init__(self, database: str, model: str) -> None:
        self.model = model
        self.locks: dict[str, threading.Lock] = defaultdict(threading.Lock)
        graph = StateGraph(State)
        graph.add_node("think", self.think)
        graph.add_node("act", self.act)
        graph.add_edge(START, "think")
        graph.add_conditional_edges("think", lambda state: "act" if state["messages"][-1].get("tool_calls") else END)
        graph.add_edge("act", "think")
        saver = SqliteSaver(sqlite3.connect(database, check_same_thread=False))
        self.graph = graph.compile(checkpointer=saver)

    def think(self, state: State) -> dict[str, Any]:
        body = json.dumps({"model": "ines", "messages": state["messages"], "stream": True}).encode()
        request = urllib.request.Request(f"{self.model}/v1/chat/completions", data=body)
        message: dict[str, Any] = {"role": "assistant", "content": "", "tool_calls": []}
        with urllib.request.urlopen(request, timeout=30) as answer:
            for line in answer:
                if line.startswith(b"data: {"):
                    delta = json.loads(line[6:])["choices"][0]["delta"]
                    message["content"] += delta.get("content") or ""
                    message["tool_calls"] += delta.get("tool_calls") or []
        return {"messages": [message]}

    def act(self, state: State) -> dict[str, Any]:
        results = []
        for call in state["messages"][-1]["tool_calls"]:
            function = call["function"]
            result = "sent"
            if function["name"] in ("note", "mark"):
                key = f"{len(state['messages'])}:{call['id']}"
                url = f"{self.model}/world/{function['name']}"
                headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
                request = urllib.request.Request(url, data=function["arguments"].encode(), headers=headers)
                with urllib.request.urlopen(request, timeout=30) as answer:
                    result = answer.read().decode()
            results.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return {"messages": results}

    def ask(self, thread: str, text: str) -> None:
        """The question is in the thread, once, and the agent has come to an end."""
        config = {"configurable": {"thread_id": thread}}
        with self.locks[thread]:
            if self.is_cut_off(thread):  # what was asked before is finished first
                self.graph.invoke(None, config, durability="sync")
            if any(text in (each.get("content") or "") for each in self.messages(thread)):
                return
            asked = {"role": "user", "content": f"[INBOX - 1 new event]\n{text}"}
            self.graph.invoke({"messages": [asked]}, config, durability="sync")

    def is_cut_off(self, thread: str) -> bool:
        """Whether there is a step to do. `next` does not say so where a step was stored and the checkpoint after it was
        not: then it is empty, and the messages of that step are there.
        """
        if self.graph.get_state({"configurable": {"thread_id": thread}}).next:
            return True
        said = self.messages(thread)
        return bool(said) and (said[-1]["role"] != "assistant" or bool(said[-1].get("tool_calls")))

    def messages(self, thread: str) -> list[dict[str, Any]]:
        return self.graph.get_state({"configurable": {"thread_id": thread}}).values.get("messages", [])


def main(port: int, database: str, model: str) -> None:
    agent = Agent(database, model)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            given = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if "text" in given:
                agent.ask(given["thread"], given["text"])
            body = json.dumps(agent.messages(given["thread"])).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the names are not ours
            """Nothing."""

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3])
