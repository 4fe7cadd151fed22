import assert from "node:assert/strict";
import { test } from "node:test";
import { Marked } from "marked";
import { formulas } from "./formulas.ts";

const marked = new Marked({ gfm: true, breaks: true }, formulas);
const html = (text: string): string => (marked.parse(text, { async: false }) as string).trim();

test("formulas are kept as they were written", () => {
  assert.equal(html("So \\(a^2 + b_1\\)."), '<p>So <code class="formula">a^2 + b_1</code>.</p>');
  assert.equal(html("So $x_1 * y_2 * z$ is"), '<p>So <code class="formula">x_1 * y_2 * z</code> is</p>');
  assert.equal(html("\\[\n\\frac{1}{2}\n\\]"), '<p><code class="formula-display">\\frac{1}{2}</code></p>');
  assert.equal(html("$$\na < b\n$$"), '<p><code class="formula-display">a &#60; b</code></p>');
  assert.equal(html("Then $$a$$ follows"), '<p>Then <code class="formula-display">a</code> follows</p>');
});

test("money is not a formula, nor is what stands in code", () => {
  assert.equal(html("It costs $5 and then $6."), "<p>It costs $5 and then $6.</p>");
  assert.equal(html("From $5 to $10"), "<p>From $5 to $10</p>");
  assert.equal(html("A `$x$` here"), "<p>A <code>$x$</code> here</p>");
  assert.equal(html("\\( unfinished"), "<p>( unfinished</p>");
});
