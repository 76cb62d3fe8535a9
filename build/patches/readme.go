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
	"step":     func(name string) string { return strings.TrimSuffix(name, ".patch") },
	"plugin":   func(name string) string { return strings.TrimSuffix(strings.TrimPrefix(name, pluginPrefix), ".patch") },
}).Parse(`<!-- Made by make update from the messages of the patches. Do not edit. -->
# The patch series

All that this project changes in Kubernetes is here and in [plugins](../plugins), a folder a step: ` + "`message`" + ` says why,
` + "`change.patch`" + ` edits files that exist before the step, and each new file is at its path in the tree. ` + "`make tree`" + ` writes
the steps as ` + "`_output/patches/*.patch`" + `, in the form that ` + "`git am`" + ` takes; a bundle has these files in ` + "`patches/`" + `. For a clone
of Kubernetes:

    git checkout v1.23.17
    git am /path/to/patches/*.patch

{{if .Modules -}}
The first of them, ` + "`0000-modules.patch`" + `, adds the packages of [modules.yaml](../modules.yaml), which upstream does not vendor:

| module | packages that come into ` + "`vendor/`" + ` |
|---|---|
{{- range .All}}
| {{.Path}} {{.Version}} | {{if .Packages}}{{code .Packages}}{{else}}those of upstream, at this version{{end}} |
{{- end}}
{{range .Modules}}{{if .Plugins}}
The plugins of {{.Path}}:{{range $i, $plugin := .Plugins}}{{if $i}},{{end}} {{$plugin.Name}}{{end}}.
{{end}}{{end}}
{{end -}}
The ` + "`0200-plugin-…`" + ` steps are the directories of ` + "`plugins/`" + `.
[docs/patches.md](../docs/patches.md) says how to add, edit and remove a step, and how to resolve a conflict.

| step | what | lines | Upstream-Status |
|---|---|---|---|
{{- range .Series}}
| {{if isPlugin .Name}}[{{step .Name}}](../plugins/{{plugin .Name}}){{else}}[{{step .Name}}]({{step .Name}}/){{end}} | {{.Subject}} | +{{.Added}} −{{.Deleted}} | {{.Trailer "Upstream-Status"}} |
{{- end}}

{{range .Statuses}}- **{{.Word}}**: {{.Meaning}}.
{{end}}
Lines that the steps edit in files which exist before them: +{{.Added}} −{{.Deleted}} in {{.Files}} files.
{{range .Series}}{{if not (isPlugin .Name)}}
## {{step .Name}}

{{.Body}}

- Why: {{.Trailer "Why"}}
{{- with .Trailer "Gain"}}
- Gain: {{.}}
{{- end}}
{{- with .Trailer "Oracle"}}
- Oracle: {{.}}
{{- end}}
{{- with .Trailer "Module"}}
- Only if modules.yaml has {{.}}
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
		sections, err := splitDiff(patch.Diff)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", patch.Name, err)
		}
		for _, section := range sections {
			if section.isPlainFile() {
				continue
			}
			added, deleted := section.lines()
			data.Added += added
			data.Deleted += deleted
			files[section.path] = true
		}
	}
	data.Files = len(files)
	var page bytes.Buffer
	if err := readme.Execute(&page, data); err != nil {
		return nil, fmt.Errorf("patches/README.md: %w", err)
	}
	return page.Bytes(), nil
}
