// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
)

// declared matches the name of a plugin in its package.
var declared = regexp.MustCompile(`(?m)^(?:const|\t)\s*Name\s+= "(\w+)"`)

// TestEveryPluginCanBeServed reads the plugins' packages. Only the scheduler decides gangs.
func TestEveryPluginCanBeServed(t *testing.T) {
	files, err := filepath.Glob("../../plugins/*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if name := declared.FindSubmatch(content); name != nil && !bytes.Contains(content, []byte("gangs.Source")) && Plugins()[string(name[1])] == nil {
			t.Errorf("%s declares the plugin %s, which is not in registry.go", file, name[1])
		}
	}
}

// serves creates the plugins of a configuration, and returns what an extender prints about them.
func serves(t *testing.T, text, profile string) (string, error) {
	t.Helper()
	loaded, err := LoadProfile(writeFile(t, "config.yaml", text), profile, testPlugins(t))
	if err != nil {
		return "", err
	}
	client := fake.NewSimpleClientset()
	decider, err := newDecider(loaded, connections{client: client, factory: newInformerFactory(client), events: &events.FakeRecorder{}})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	options := Options{Config: "config.yaml", ClientCAFile: "ca.crt", CertificateFile: "crt", Out: &out}
	options.announce(loaded, decider, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8888})
	return out.String(), nil
}

// TestOnlyOurPluginsAreServed has configurations that enable upstream's plugins, too.
func TestOnlyOurPluginsAreServed(t *testing.T) {
	for name, test := range map[string]struct{ plugins, want string }{
		"at multiPoint, among the default plugins": {
			"multiPoint: {enabled: [{name: MyScorePlugin, weight: 25}, {name: Alone}]}",
			"preFilter  Alone\nfilter     MyScorePlugin\nfilter     Alone\nscore      MyScorePlugin (weight 25)\n" +
				"the weights sum to 25; next: give the extender this weight in the scheduler's configuration: weight: 25\n",
		},
		"at one point only, all others off": {
			`multiPoint: {disabled: [{name: "*"}]}, queueSort: {enabled: [{name: PrioritySort}]},
				score: {enabled: [{name: MyScorePlugin}]}, bind: {enabled: [{name: DefaultBinder}]}`,
			"score      MyScorePlugin (weight 1)\n",
		},
		"off at one point": {
			"multiPoint: {enabled: [{name: MyScorePlugin}]}, score: {disabled: [{name: MyScorePlugin}]}", "filter     MyScorePlugin\n",
		},
		"after upstream's own at the same point": {
			`score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality, weight: 9}, {name: Other, weight: 5}]}`,
			"score      Other (weight 5)\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := serves(t, header+"profiles: [{schedulerName: served, plugins: {"+test.plugins+"}, "+
				"pluginConfig: [{name: MyScorePlugin, args: {preferredValues: [a]}}, {name: InterPodAffinity, args: {hardPodAffinityWeight: 3}}]}]\n", "")
			got = strings.TrimPrefix(got, "serving the profile served of config.yaml on https://127.0.0.1:8888 to clients with a certificate of ca.crt\n")
			if err != nil || !strings.HasPrefix(got, test.want) || strings.Count(got, "(weight") > 1 {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	const two = header + "profiles:\n- schedulerName: one\n- schedulerName: two\n  plugins: {multiPoint: {enabled: [{name: Alone}]}}\n"
	for name, test := range map[string]struct {
		text, profile string
		// want are parts of the error; none expects no error.
		want []string
	}{
		"the profile that is named":  {two, "two", nil},
		"no profile is named":        {two, "", []string{"has 2 profiles", "--profile: one, two"}},
		"no such profile":            {two, "three", []string{`"three"`, "--profile: one, two"}},
		"no plugin of ours":          {two, "one", []string{"the profile one", "enables no plugin of this project"}},
		"multiPoint of v1beta2":      {strings.Replace(byDiskType, "v1beta3", "v1beta2", 1), "", []string{"enables no plugin", "v1beta3"}},
		"no YAML":                    {"{", "", []string{"cannot be used", "next: correct the file"}},
		"no configuration":           {"apiVersion: v1\nkind: Pod\n", "", []string{"cannot be used"}},
		"unknown field":              {header + "profile: []\n", "", []string{"\n  profile: unknown field: the known fields are"}},
		"argument of the wrong type": {strings.Replace(byDiskType, "[ssd, hdd]", "ssd", 1), "", []string{"preferredValues"}},
		"a setting without its extension point": {header + "profiles:\n- plugins: {preScore: {enabled: [{name: DataLocality}]}, " +
			"score: {enabled: [{name: DataLocality}]}}\n  pluginConfig: [{name: DataLocality, args: {requireWithin: kubernetes.io/hostname}}]\n",
			"", []string{"\n  profiles[0].plugins.filter.enabled: Required value: {name: DataLocality}: it has requireWithin"}},
		"three errors, also of upstream's fields": {
			strings.NewReplacer("disktype", `"!"`, "[ssd, hdd]", "[]").Replace(byDiskType) + "percentageOfNodesToScore: 101\n", "", []string{
				"\n  profiles[0].pluginConfig[0].args.nodeLabel: Invalid value",
				"\n  profiles[0].pluginConfig[0].args.preferredValues: Required value",
				"\n  percentageOfNodesToScore: Invalid value: 101"}},
		"unknown plugin":    {strings.ReplaceAll(byDiskType, "name: MyScorePlugin", "name: MyScorePlugn"), "", []string{`"MyScorePlugn" does not exist`}},
		"a negative weight": {enabling("{name: Labelled, weight: 3}", "{name: Other, weight: -2}"), "", []string{"Other has the weight -2"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serves(t, test.text, test.profile)
			if (err == nil) != (test.want == nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "next: ") {
					t.Errorf("%q is not in %q, or what to do next", want, err)
				}
			}
		})
	}
}
