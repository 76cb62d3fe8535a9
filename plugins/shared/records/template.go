// SPDX-License-Identifier: Apache-2.0

package records

// style is the style of all pages. The Content-Security-Policy has its hash, so it has no comments, which html/template
// would remove.
const style = `
:root {
  color-scheme: light dark;
  --text: #1c2128; --quiet: #545d68; --back: #ffffff; --panel: #f4f6f8; --line: #c9d1d9; --link: #0a4fa8;
  --kept: #c3dcf8; --bar: #2f6fbd; --rejected: #fbcdc6; --bad: #c0392b; --chosen: #bfe6c6; --good: #2b8a3e; --empty: #e3e7eb;
}
@media (prefers-color-scheme: dark) {
  :root {
    --text: #e6e9ec; --quiet: #a9b2bc; --back: #14181d; --panel: #1e242b; --line: #434c56; --link: #86bbff;
    --kept: #234a76; --bar: #79b0f0; --rejected: #74302a; --bad: #f0867b; --chosen: #1b4f29; --good: #6cc580; --empty: #2f3740;
  }
}
* { box-sizing: border-box; }
body { margin: 0; color: var(--text); background: var(--back); font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
header, main, footer { max-width: 76rem; margin: 0 auto; padding: 0.5rem 1rem; }
header { display: flex; flex-wrap: wrap; gap: 0.25rem 1.5rem; align-items: baseline; border-bottom: 1px solid var(--line); }
header p { margin: 0; font-weight: 600; }
nav { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; }
nav a { padding: 0.25rem 0; }
nav a[aria-current] { color: inherit; font-weight: 600; text-decoration: none; border-bottom: 3px solid var(--link); }
footer { margin-top: 2rem; border-top: 1px solid var(--line); color: var(--quiet); font-size: 0.875rem; }
a { color: var(--link); }
a:focus-visible, button:focus-visible, input:focus-visible, textarea:focus-visible, summary:focus-visible, .scroll:focus-visible {
  outline: 3px solid var(--link); outline-offset: 2px;
}
h1 { font-size: 1.5rem; line-height: 1.25; margin: 1rem 0 0.5rem; }
h2 { font-size: 1.2rem; margin: 2rem 0 0.5rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 0.25rem; }
p { margin: 0.5rem 0; max-width: 60rem; }
.answer { font-size: 1.125rem; }
.quiet { color: var(--quiet); font-size: 0.875rem; }
.notice { padding: 0.5rem 0.75rem; border-left: 4px solid var(--link); background: var(--panel); }
.badge { display: inline-block; padding: 0 0.5rem; border-radius: 0.25rem; font-size: 0.875rem; white-space: nowrap; background: var(--empty); }
.good { background: var(--chosen); }
.bad { background: var(--rejected); }
.scroll { overflow-x: auto; margin: 0.5rem 0; border: 1px solid var(--line); border-radius: 0.25rem; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 0.375rem 0.75rem; text-align: left; vertical-align: top; border-top: 1px solid var(--line); min-width: 5rem; overflow-wrap: break-word; }
thead th { border-top: 0; background: var(--panel); font-size: 0.875rem; }
tbody th { font-weight: normal; min-width: 9rem; max-width: 24rem; background: var(--back); }
td.text { min-width: 16rem; overflow-wrap: anywhere; }
td.when { white-space: nowrap; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td small, th small, .block { display: block; }
small { color: var(--quiet); font-size: 0.8125rem; }
tr.chosen td, tr.chosen th { background: var(--chosen); }
tr.chosen small { color: inherit; }
.fixed tbody th, .fixed thead th:first-child { position: sticky; left: 0; min-width: 8rem; max-width: 14rem; border-right: 1px solid var(--line); }
td ul, dd ul { margin: 0; padding-left: 1rem; }
.bar { display: block; width: 100%; min-width: 4rem; height: 0.375rem; margin: 0.25rem 0; fill: var(--bar); }
.bar .empty { fill: var(--empty); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(12rem, 100%), 1fr)); gap: 0.5rem 1.5rem; margin: 0.75rem 0; }
dt { color: var(--quiet); font-size: 0.875rem; }
dd { margin: 0; }
.words { display: block; }
.words dd { margin: 0 0 0.5rem; white-space: pre-wrap; }
.funnel { display: block; width: 100%; max-width: 40rem; margin: 0.75rem 0; font-size: 0.9375rem; }
.funnel text { text-anchor: middle; fill: var(--text); }
.funnel rect, .curve { fill: var(--kept); stroke: var(--bar); }
.funnel .rejected { fill: var(--rejected); stroke: var(--bad); }
.funnel .chosen { fill: var(--chosen); stroke: var(--good); }
.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(26rem, 100%), 1fr)); gap: 1rem 1.5rem; }
figure { margin: 0; display: grid; grid-template-rows: 1fr auto auto; }
.chart { display: block; width: 100%; height: 5rem; background: var(--panel); border: 1px solid var(--line); }
.curve { stroke-width: 2; vector-effect: non-scaling-stroke; }
.ends { display: flex; justify-content: space-between; margin: 0; color: var(--quiet); font-size: 0.8125rem; }
details { border: 1px solid var(--line); border-radius: 0.25rem; margin: 0.5rem 0; padding: 0.5rem 0.75rem; }
summary { cursor: pointer; }
form { margin: 0.75rem 0; }
.line { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; }
.line input { flex: 1 1 12rem; max-width: 30rem; }
label { display: block; }
input, textarea, button { font: inherit; color: inherit; background: var(--back); border: 1px solid var(--quiet); border-radius: 0.25rem; padding: 0.375rem 0.75rem; }
input { min-width: 0; }
textarea { display: block; width: 100%; max-width: 60rem; margin: 0.25rem 0 0.5rem; font-family: ui-monospace, monospace; font-size: 0.875rem; }
button { background: var(--panel); cursor: pointer; }
@media (max-width: 40rem) {
  dl { grid-template-columns: repeat(auto-fill, minmax(min(9rem, 100%), 1fr)); }
  .fixed tbody th { max-width: 8rem; overflow-wrap: anywhere; }
  .stack thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .stack table, .stack tbody, .stack tr, .stack td, .stack tbody th { display: block; }
  .stack td, .stack tbody th { border: 0; padding: 0.125rem 0.75rem; max-width: none; }
  .stack tr { border-top: 1px solid var(--line); padding: 0.5rem 0; }
}
`

// pageTemplates are the pages and their shared parts. html/template escapes all data from the cluster.
const pageTemplates = `
{{define "top"}}<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}} · kube-scheduler</title>
<style>{{style}}</style>
</head>
<body>
<header>
<p>kube-scheduler</p>
<nav aria-label="Pages">
<a href="/scheduling/pods"{{if eq .Page "pods"}} aria-current="page"{{end}}>Pods</a>
<a href="/scheduling/queue"{{if eq .Page "queue"}} aria-current="page"{{end}}>Queue</a>
<a href="/scheduling/what-if"{{if eq .Page "what-if"}} aria-current="page"{{end}}>What if</a>
</nav>
</header>
<main>
{{if and .Kind (not .Leader)}}<p class="notice">This scheduler is a standby: another one decides now{{with .LeaderIdentity}}, {{.}}{{end}}. Ask that one; here is only what this one decided before.</p>
{{end}}<h1>{{.Title}}</h1>
{{end}}

{{define "bottom"}}</main>
<footer>
<p>Made {{stamp .Now}}{{with .Version}} by kube-scheduler {{.}}{{end}}{{with .Configuration}}, configuration {{.}}{{end}}.
{{with .JSON}}<a href="{{.}}">The same as JSON</a>{{end}}</p>
</footer>
</body>
</html>
{{end}}

{{define "search"}}<form method="get" role="search">
<label for="search">Find pods by name, node, result or reason</label>
<div class="line"><input type="search" id="search" name="search" value="{{.}}"><button>Find</button></div>
</form>
{{end}}

{{define "node-links"}}{{range $i, $node := .}}{{if $i}}, {{end}}<a href="{{nodePath $node}}">{{$node}}</a>{{end}}{{end}}

{{define "bar"}}<svg class="bar" aria-hidden="true"><rect class="empty" width="100%" height="100%"/><rect width="{{.}}%" height="100%"/></svg>{{end}}

{{define "reasons"}}{{if eq (len .) 1}}{{index . 0}}{{else if .}}<ul>{{range .}}<li>{{.}}</li>{{end}}</ul>{{else}}no reason is given{{end}}{{end}}

{{define "pods"}}{{template "top" .}}
{{template "search" .Search}}
{{$now := .Now}}{{$waiting := thatWait .Content.Items true}}{{$others := thatWait .Content.Items false}}
{{if .Search}}<p>{{counted (len .Content.Items) "pod"}} found for “{{.Search}}”. <a href="/scheduling/pods">Show all</a></p>
{{end}}<h2>{{counted (len $waiting) "pod"}} waiting</h2>
{{if $waiting}}<div class="scroll stack" role="region" aria-label="Pods that wait" tabindex="0"><table>
<thead><tr><th scope="col">Pod</th><th scope="col">Result</th><th scope="col">Why</th><th scope="col">Last attempt</th></tr></thead>
<tbody>
{{range $waiting}}<tr><th scope="row"><a href="{{podPath .Namespace .Name}}">{{.Name}}</a><small>{{.Namespace}}</small></th><td><span class="badge {{badge .Result}}">{{.Result}}</span></td><td class="text">{{.Summary}}</td><td class="when">number {{.Attempt}}, {{ago $now .Time}}</td></tr>
{{end}}</tbody></table></div>
{{else}}<p>None that is recorded here.</p>
{{end}}<h2>{{counted (len $others) "pod"}} placed or gone</h2>
{{if $others}}<div class="scroll stack" role="region" aria-label="Pods that are placed or gone" tabindex="0"><table>
<thead><tr><th scope="col">Pod</th><th scope="col">Result</th><th scope="col">Node</th><th scope="col">Last attempt</th></tr></thead>
<tbody>
{{range $others}}<tr><th scope="row"><a href="{{podPath .Namespace .Name}}">{{.Name}}</a><small>{{.Namespace}}</small></th><td><span class="badge {{badge .Result}}">{{.Result}}</span></td><td{{if not .Node}} class="text"{{end}}>{{with .Node}}<a href="{{nodePath .}}">{{.}}</a>{{else}}{{.Summary}}{{end}}</td><td class="when">number {{.Attempt}}, {{ago $now .Time}}</td></tr>
{{end}}</tbody></table></div>
{{else}}<p>None that is recorded here.</p>
{{end}}{{template "bottom" .}}{{end}}

{{define "pod"}}{{template "top" .}}
{{$now := .Now}}{{with .Content}}
<p class="answer"><span class="badge {{badge .Result}}">{{.Result}}</span> {{.Summary}}</p>
<dl>
{{with .Node}}<div><dt>Node</dt><dd><a href="{{nodePath .}}">{{.}}</a></dd></div>
{{end}}{{with .NominatedNode}}<div><dt>Pods are evicted for it from</dt><dd><a href="{{nodePath .}}">{{.}}</a></dd></div>
{{end}}<div><dt>Last attempt</dt><dd>number {{.Attempt}}, {{ago $now .Time}}</dd></div>
<div><dt>UID</dt><dd>{{.UID}}</dd></div>
</dl>
{{if eq (badge .Result) "bad"}}<p><a href="{{whatIfPath .Namespace .Name}}">What if it was tried now?</a> Or <a href="{{whatIfPath .Namespace .Name}}&amp;nodes=all">with the verdict on each node</a>.</p>
{{end}}{{if .Permit}}<h2>It waits for Permit plugins</h2>
<div class="scroll" role="region" aria-label="Permit plugins" tabindex="0"><table>
<thead><tr><th scope="col">Plugin</th><th scope="col">Waiting since</th></tr></thead>
<tbody>
{{range .Permit}}<tr><th scope="row">{{.Plugin}}</th><td>{{stamp .Since}}, {{ago $now .Since}}</td></tr>
{{end}}</tbody></table></div>
{{end}}{{range $i, $attempt := .Attempts}}{{if $i}}<details>
<summary>Attempt {{.Attempt}}, {{ago $now .Time}}: {{.Summary}}</summary>
{{template "attempt" .}}</details>
{{else}}<h2>The last attempt</h2>
{{template "attempt" .}}{{if gt (len $.Content.Attempts) 1}}<h2>Attempts before</h2>
{{end}}{{end}}{{else}}<p>No attempt is kept.</p>
{{end}}{{end}}{{template "bottom" .}}{{end}}

{{define "attempt"}}{{with .Error}}<p>The scheduler said: {{.}}</p>
{{end}}<dl>
<div><dt>Began</dt><dd>{{stamp .Time}}</dd></div>
<div><dt>Profile</dt><dd>{{.Profile}}</dd></div>
<div><dt>Waited in the queue</dt><dd>{{lasted .QueuedSeconds}}</dd></div>
<div><dt>Since it first came there</dt><dd>{{lasted .SinceFirstSeconds}}</dd></div>
{{with .WokenBy}}<div><dt>Woken by</dt><dd>{{.}}</dd></div>
{{end}}<div><dt>Search for a node</dt><dd>{{lasted .CycleSeconds}}</dd></div>
{{with .ToEndSeconds}}<div><dt>Until bound or failed</dt><dd>{{lasted .}}</dd></div>
{{end}}</dl>
{{template "decision" .Decision}}{{if .Steps}}<h3>Steps after a node was chosen</h3>
{{$all := stepSeconds .Steps}}<div class="scroll" role="region" aria-label="Steps" tabindex="0"><table>
<thead><tr><th scope="col">Extension point</th><th scope="col">Status</th><th scope="col">Took</th></tr></thead>
<tbody>
{{range .Steps}}<tr><th scope="row">{{.ExtensionPoint}}</th><td>{{.Status}}</td><td>{{lasted .Seconds}}{{template "bar" percent .Seconds $all}}</td></tr>
{{end}}</tbody></table></div>
{{end}}{{end}}

{{define "decision"}}{{with funnel .}}<svg class="funnel" role="img" height="{{.Height}}em"><title>From all nodes to the chosen one</title><desc>{{.Words}}</desc>
{{range .Stages}}<text x="50%" y="{{.Base}}em">{{.Text}}</text><rect class="{{.Class}}" x="{{.From}}%" y="{{.Top}}em" width="{{.Width}}%" height="0.75em"/>{{if eq .Class "rejected"}}<rect x="{{.KeptFrom}}%" y="{{.Top}}em" width="{{.Kept}}%" height="0.75em"/>{{end}}
{{end}}</svg>
{{end}}{{if .Rejections}}<h3>Why nodes do not fit</h3>
{{$nodes := .Evaluated}}{{$samples := samples .Rejections}}<div class="scroll" role="region" aria-label="Rejections" tabindex="0"><table>
<thead><tr><th scope="col">Plugin</th><th scope="col">Reasons</th><th scope="col">Nodes</th>{{if $samples}}<th scope="col">Some of them</th>{{end}}</tr></thead>
<tbody>
{{range .Rejections}}<tr><th scope="row">{{named .Plugin}}</th><td class="text">{{template "reasons" .Reasons}}</td><td>{{.Nodes}}{{template "bar" percent .Nodes $nodes}}</td>{{if $samples}}<td class="text">{{template "node-links" .Sample}}</td>{{end}}</tr>
{{end}}</tbody></table></div>
{{end}}{{if .Extenders}}<h3>Calls of extenders</h3>
<div class="scroll" role="region" aria-label="Calls of extenders" tabindex="0"><table>
<thead><tr><th scope="col">Extender</th><th scope="col">Verb</th><th scope="col">Took</th><th scope="col" class="number">Nodes sent</th><th scope="col" class="number">Nodes left</th><th scope="col">Error</th></tr></thead>
<tbody>
{{range .Extenders}}<tr><th scope="row">{{.URL}}</th><td>{{.Verb}}</td><td>{{lasted .Seconds}}</td><td class="number">{{.NodesIn}}</td><td class="number">{{.NodesOut}}</td><td{{if .Error}} class="text"{{end}}>{{or .Error "none"}}</td></tr>
{{end}}</tbody></table></div>
{{end}}{{with .Preemption}}<h3>Preemption</h3>
<dl>
<div><dt>Nodes where evictions make room</dt><dd>{{.Candidates}}{{if .Sample}}: {{template "node-links" .Sample}}{{if lt (len .Sample) .Candidates}}, …{{end}}{{end}}</dd></div>
{{with .Node}}<div><dt>Chosen for it</dt><dd><a href="{{nodePath .}}">{{.}}</a></dd></div>
{{end}}{{if .Victims}}<div><dt>Pods to be evicted</dt><dd>{{if lt (len .Victims) .VictimCount}}{{.VictimCount}}, among them:{{end}}<ul>{{range .Victims}}<li>{{.}}</li>{{end}}</ul></dd></div>
{{end}}{{with .WhyNot}}<div><dt>Why nothing is evicted</dt><dd>{{.}}</dd></div>
{{end}}</dl>
{{end}}{{if .Scores}}<h3>Scores of the best nodes</h3>
<p class="quiet">In each column the weighted score of a plugin; below it the plugin's own score, and what became of that, from 0 to 100, before the weight.</p>
{{with scoreTable .}}{{$d := .}}<div class="scroll fixed" role="region" aria-label="Scores" tabindex="0"><table>
<thead><tr><th scope="col">Node</th><th scope="col">Total</th>{{range (index .Scores 0).Plugins}}<th scope="col">{{.Name}} <small>weight {{.Weight}}</small></th>{{end}}{{if .Extenders}}<th scope="col">Extenders</th>{{end}}</tr></thead>
<tbody>
{{range .Scores}}<tr{{if eq .Node $d.Node}} class="chosen"{{end}}><th scope="row"><a href="{{nodePath .Node}}">{{.Node}}</a>{{if eq .Node $d.Node}}<small>chosen</small>{{end}}</th><td>{{.Total}}{{template "bar" percent .Total $d.Highest}}</td>{{range .Plugins}}<td>{{.Weighted}}{{template "bar" percent .Normalized 100}}<small>{{.Raw}} → {{.Normalized}}</small></td>{{end}}{{if $d.Extenders}}<td>{{.Extenders}}</td>{{end}}</tr>
{{end}}</tbody></table></div>
{{end}}{{if gt .Ties 1}}<p>{{.Ties}} nodes have the highest total: one of them was drawn by lot.</p>
{{end}}{{else if eq .Feasible 1}}<p>One node fits, so nothing was scored.</p>
{{end}}{{if .Words}}<h3>What plugins say</h3>
<dl class="words">
{{range .Words}}<dt>{{.Plugin}}</dt><dd>{{.Text}}</dd>
{{end}}</dl>
{{end}}{{end}}

{{define "queue"}}{{template "top" .}}
{{$now := .Now}}{{with chart .Content}}{{if .Parts}}{{$h := .}}<h2>The last hour</h2>
<div class="charts">
{{range .Parts}}<figure>
<figcaption><strong>{{.Where}}</strong>: {{counted .Now "pod"}} now, at most {{.Most}}<small class="block">These {{.About}}.</small></figcaption>
<svg class="chart" role="img" viewBox="0 0 1000 100" preserveAspectRatio="none"><title>Pods in {{.Where}}</title><desc>{{.Words}}</desc><polygon class="curve" points="{{.Line}}"/></svg>
<p class="ends" aria-hidden="true"><span>{{clock $h.From}}</span><span>{{clock $h.To}}</span></p>
</figure>
{{end}}</div>
<details>
<summary>The same in numbers</summary>
<div class="scroll" role="region" aria-label="Lengths of the queue" tabindex="0"><table>
<thead><tr><th scope="col">Time</th>{{range .Parts}}<th scope="col" class="number">{{.Where}}</th>{{end}}</tr></thead>
<tbody>
{{range .Rows}}<tr><th scope="row">{{clock .Time}}</th><td class="number">{{.Active}}</td><td class="number">{{.Backoff}}</td><td class="number">{{.Unschedulable}}</td><td class="number">{{.Permit}}</td></tr>
{{end}}</tbody></table></div>
</details>
{{end}}{{end}}<h2>{{counted (len .Content.Items) "pod"}} {{if .Search}}found{{else}}waiting{{end}}</h2>
{{template "search" .Search}}
{{if .Content.Items}}<div class="scroll" role="region" aria-label="Pods that wait" tabindex="0"><table>
<thead><tr><th scope="col">Pod</th><th scope="col">Part</th><th scope="col">Why</th><th scope="col">Waits for</th><th scope="col">In the queue</th><th scope="col" class="number">Attempts</th><th scope="col" class="number">Priority</th><th scope="col">Profile</th></tr></thead>
<tbody>
{{range .Content.Items}}<tr><th scope="row"><a href="{{podPath .Namespace .Name}}">{{.Name}}</a><small>{{.Namespace}}</small></th><td>{{.Where}}{{with .Until}}<small>again {{until $now .}}</small>{{end}}</td><td class="text">{{.Summary}}{{with .NominatedNode}}<small>Pods are evicted for it from <a href="{{nodePath .}}">{{.}}</a>.</small>{{end}}</td><td>{{join .WaitsFor ", "}}</td><td class="when">{{ago $now .Since}}<small>first {{ago $now .First}}</small></td><td class="number">{{.Attempts}}</td><td class="number">{{.Priority}}</td><td>{{.Profile}}</td></tr>
{{end}}</tbody></table></div>
{{else if not .Search}}<p>No pod waits for this scheduler.</p>
{{end}}{{template "bottom" .}}{{end}}

{{define "what-if"}}{{template "top" .}}
{{with .Content}}{{if .Result}}<p class="answer"><span class="badge {{badge .Result}}">{{.Result}}</span> {{.Summary}}</p>
<dl>
<div><dt>Pod</dt><dd><a href="{{podPath .Namespace .Name}}">{{.Namespace}}/{{.Name}}</a></dd></div>
<div><dt>Profile</dt><dd>{{.Profile}}</dd></div>
<div><dt>Scheduling waited for this answer</dt><dd>{{lasted .Seconds}}</dd></div>
</dl>
<p class="quiet">Nothing is reserved, bound or evicted. All filters look at all nodes, so a node may be counted in several rejections.</p>
{{template "decision" .Decision}}{{if .Verdicts}}<h2>Each node</h2>
{{$best := (index .Verdicts 0).Total}}<div class="scroll stack" role="region" aria-label="Verdicts of all nodes" tabindex="0"><table>
<thead><tr><th scope="col">Node</th><th scope="col">Verdict</th><th scope="col">Why</th></tr></thead>
<tbody>
{{range .Verdicts}}<tr><th scope="row"><a href="{{nodePath .Node}}">{{.Node}}</a></th>{{if .Fits}}<td><span class="badge good">fits</span></td><td class="text">score {{.Total}}{{template "bar" percent .Total $best}}</td>{{else}}<td><span class="badge bad">rejected</span></td><td class="text">{{range .Rejections}}<span class="block">{{named .Plugin}}: {{join .Reasons ", "}}</span>{{else}}no reason is given{{end}}</td>{{end}}</tr>
{{end}}</tbody></table></div>
{{end}}{{end}}{{end}}{{template "what-if-forms" .}}{{template "bottom" .}}{{end}}

{{define "what-if-forms"}}<h2>Ask for a pod that waits</h2>
<form method="get" action="/scheduling/what-if">
<label for="pod">The pod, as NAMESPACE/NAME</label>
<div class="line"><input id="pod" name="pod" value="{{.Pod}}" required autocapitalize="none" spellcheck="false"><button>Ask</button><button name="nodes" value="all">Ask for each node</button></div>
</form>
<h2>Ask for a pod that does not exist</h2>
<form method="post" action="/scheduling/what-if">
<label for="manifest">Its manifest, in YAML or JSON</label>
<textarea id="manifest" name="manifest" rows="8" required autocapitalize="none" spellcheck="false">{{"\n"}}{{.Manifest}}</textarea>
<div class="line"><button>Ask</button><button formaction="/scheduling/what-if?nodes=all">Ask for each node</button></div>
</form>
{{end}}

{{define "node"}}{{template "top" .}}
{{$now := .Now}}{{with .Content}}<p>From the last attempt of each pod that is recorded here.</p>
<h2>{{counted (len .Rejected) "pod"}} rejected here</h2>
<p class="notice">An attempt names only some of the nodes that it rejects, so other pods may have been rejected here, too. <a href="/scheduling/what-if">What if</a> gives the verdict on each node.</p>
{{if .Rejected}}<div class="scroll" role="region" aria-label="Pods that it rejected" tabindex="0"><table>
<thead><tr><th scope="col">Pod</th><th scope="col">Plugin</th><th scope="col">Reasons</th><th scope="col" class="number">Nodes rejected so</th><th scope="col">When</th></tr></thead>
<tbody>
{{range .Rejected}}<tr><th scope="row"><a href="{{podPath .Namespace .Name}}">{{.Name}}</a><small>{{.Namespace}}</small></th><td>{{named .Plugin}}</td><td class="text">{{template "reasons" .Reasons}}<small><a href="{{whatIfPath .Namespace .Name}}&amp;nodes=all">verdict on each node</a></small></td><td class="number">{{.Nodes}}</td><td class="when">{{ago $now .Time}}</td></tr>
{{end}}</tbody></table></div>
{{end}}<h2>{{counted (len .Scored) "pod"}} for which it was among the best</h2>
{{if .Scored}}<div class="scroll" role="region" aria-label="Pods for which it was scored" tabindex="0"><table>
<thead><tr><th scope="col">Pod</th><th scope="col">Rank</th><th scope="col">Total</th><th scope="col">Chosen</th><th scope="col">When</th></tr></thead>
<tbody>
{{range .Scored}}<tr><th scope="row"><a href="{{podPath .Namespace .Name}}">{{.Name}}</a><small>{{.Namespace}}</small></th><td>{{.Rank}} of {{.Of}}</td><td>{{.Total}} of {{.Highest}}{{template "bar" percent .Total .Highest}}</td><td>{{if .Chosen}}yes{{else}}no{{end}}</td><td class="when">{{ago $now .Time}}</td></tr>
{{end}}</tbody></table></div>
{{end}}<h2>{{counted (len .Pods) "pod"}} placed here</h2>
{{if .Pods}}<div class="scroll" role="region" aria-label="Pods that are placed here" tabindex="0"><table>
<thead><tr><th scope="col">Pod</th><th scope="col">Result</th><th scope="col">When</th></tr></thead>
<tbody>
{{range .Pods}}<tr><th scope="row"><a href="{{podPath .Namespace .Name}}">{{.Name}}</a><small>{{.Namespace}}</small></th><td><span class="badge {{badge .Result}}">{{.Result}}</span></td><td class="when">{{ago $now .Time}}</td></tr>
{{end}}</tbody></table></div>
{{end}}{{end}}{{template "bottom" .}}{{end}}

{{define "problem"}}{{template "top" .}}
<p class="answer">{{.Content.Text}}</p>
{{if eq .Page "what-if"}}{{template "what-if-forms" .}}{{else}}<p><a href="/scheduling/pods">All pods that are recorded here</a></p>
{{end}}{{template "bottom" .}}{{end}}
`
