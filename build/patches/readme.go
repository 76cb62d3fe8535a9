// SPDX-License-Identifier: Apache-2.0

package patches

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"

	"kube-scheduler-fork/build/source"
)

var readme = template.Must(template.New("README.md").Funcs(template.FuncMap{
	"code":     func(names []string) string { return "`" + strings.Join(names, "`, `") + "`" },
	"isPlugin": func(name string) bool { return strings.HasPrefix(name, pluginPrefix) },
}).Parse(`<!-- Made by make update from the messages of the patches. Do not edit. -->
# The patch series

All that this project changes in Kubernetes, as ` + "`git am`" + ` takes it, in the order of the files' names. To apply it to a clone
of your own, at a tag that Applies-To covers:

    git checkout v1.23.17
    git am /path/to/patches/*.patch

{{if .Modules -}}
What then compiles imports packages that upstream does not vendor. They are in ` + "`0000-modules.patch`" + `,
which comes before the others. A release bundle has it here. In a checkout, ` + "`make export-modules`" + ` writes it to
` + "`_output/`" + `, from [modules.yaml](../modules.yaml).

| module | packages that come into ` + "`vendor/`" + ` |
|---|---|
{{- range .All}}
| {{.Path}} {{.Version}} | {{code .Packages}} |
{{- end}}
{{range .Modules}}{{if .Plugins}}
The plugins of {{.Path}}:{{range $i, $plugin := .Plugins}}{{if $i}},{{end}} {{$plugin.Name}}{{end}}.
{{end}}{{end}}
{{end -}}
The ` + "`0200-plugin-…`" + ` patches are made from ` + "`plugins/`" + ` by ` + "`make patches`" + `; the others are made by hand.
[docs/patches.md](../docs/patches.md) tells how to add, edit, remove and resolve one.

| patch | what | lines | Upstream-Status |
|---|---|---|---|
{{- range .Series}}
| [{{.Name}}]({{.Name}}) | {{.Subject}} | +{{.Added}} −{{.Deleted}} | {{.Trailer "Upstream-Status"}} |
{{- end}}

{{range .Statuses}}- **{{.Word}}**: {{.Meaning}}.
{{end}}
Upstream's own lines touched by hand-made patches: +{{.Added}} −{{.Deleted}} in {{.Files}} files.
{{range .Series}}{{if not (isPlugin .Name)}}
## {{.Name}}

{{.Body}}

- Why: {{.Trailer "Why"}}
{{- with .Trailer "Gain"}}
- Gain: {{.}}
{{- end}}
{{- with .Trailer "Oracle"}}
- Oracle: {{.}}
{{- end}}
{{- with .Trailer "Module"}}
- Only where {{.}} is carried
{{- end}}
- Drop when: {{.Trailer "Drop-When"}}
{{- with .Trailer "Drop-Check"}}
- Checked by ` + "`make rebase-report`: `{{.}}`" + `
{{- end}}
- Applies to {{.Trailer "Applies-To"}}; changes {{code .Files}}
{{end}}{{end -}}
`))

// Readme returns the page that describes the series: the added modules, a table of all patches, and for each hand-made
// patch why it exists and when to drop it.
func Readme(series []Patch, modules []source.Module) ([]byte, error) {
	data := struct {
		Series         []Patch
		Modules, All   []source.Module
		Statuses       []struct{ Word, Meaning string }
		Added, Deleted int
		Files          int
	}{Series: series, Modules: modules, All: source.All(modules)}
	for _, s := range statuses {
		data.Statuses = append(data.Statuses, struct{ Word, Meaning string }{s.word, s.meaning})
	}
	files := map[string]bool{}
	for _, patch := range series {
		if strings.HasPrefix(patch.Name, pluginPrefix) {
			continue
		}
		data.Added += patch.Added
		data.Deleted += patch.Deleted
		for _, file := range patch.Files {
			files[file] = true
		}
	}
	data.Files = len(files)
	var page bytes.Buffer
	if err := readme.Execute(&page, data); err != nil {
		return nil, fmt.Errorf("patches/README.md: %w", err)
	}
	return page.Bytes(), nil
}
