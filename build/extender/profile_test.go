// SPDX-License-Identifier: Apache-2.0

package extender

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	pluginsconfig "k8s.io/kubernetes/pkg/scheduler/framework/plugins/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// declared finds the name of a plugin in its package.
var declared = regexp.MustCompile(`(?m)^(?:const|\t)\s*Name\s+= "(\w+)"`)

// TestEveryPluginCanBeServed looks for plugins in the folders beside this one. Gangs are decided by the scheduler alone.
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

// TestInTreeNamesAreUpstreams compares the list of names with what upstream's registry holds.
func TestInTreeNamesAreUpstreams(t *testing.T) {
	var want []string
	for name := range frameworkplugins.NewInTreeRegistry() {
		want = append(want, name)
	}
	slices.Sort(want)
	if got := inTree.List(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestOnlyWhatCanBeServedIs makes the plugins of configurations of which much is for the scheduler alone.
func TestOnlyWhatCanBeServedIs(t *testing.T) {
	const args = `
  pluginConfig:
  - {name: MyScorePlugin, args: {nodeLabel: zone, preferredValues: [a]}}
  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 3}}
`
	for name, test := range map[string]struct {
		profile string
		// want are the plugins at preFilter, filter, preScore and score.
		want [4]string
	}{
		"by multiPoint, among the default plugins": {`
  plugins:
    multiPoint: {enabled: [{name: MyScorePlugin, weight: 25}, {name: Alone}]}` + args,
			[4]string{"Alone", "MyScorePlugin, Alone", "-", "MyScorePlugin (weight 25)"}},
		"by multiPoint without a weight": {`
  plugins:
    multiPoint: {enabled: [{name: MyScorePlugin}]}` + args,
			[4]string{"-", "MyScorePlugin", "-", "MyScorePlugin (weight 1)"}},
		"at one point only, all others off": {`
  plugins:
    multiPoint: {disabled: [{name: "*"}]}
    queueSort: {enabled: [{name: PrioritySort}]}
    score: {enabled: [{name: MyScorePlugin, weight: 2}]}
    bind: {enabled: [{name: DefaultBinder}]}` + args,
			[4]string{"-", "-", "-", "MyScorePlugin (weight 2)"}},
		"off at one point": {`
  plugins:
    multiPoint: {enabled: [{name: MyScorePlugin, weight: 25}]}
    score: {disabled: [{name: MyScorePlugin}]}` + args,
			[4]string{"-", "MyScorePlugin", "-", "-"}},
		"with another weight at one point": {`
  plugins:
    multiPoint: {enabled: [{name: MyScorePlugin, weight: 25}]}
    score: {enabled: [{name: MyScorePlugin, weight: 3}]}` + args,
			[4]string{"-", "MyScorePlugin", "-", "MyScorePlugin (weight 3)"}},
		"after upstream's own at the same point": {`
  plugins:
    preScore: {disabled: [{name: "*"}]}
    score: {disabled: [{name: "*"}], enabled: [{name: ImageLocality, weight: 9}, {name: Other, weight: 5}, {name: Labelled}]}`,
			[4]string{"-", "-", "-", "Other (weight 5), Labelled (weight 1)"}},
	} {
		for _, version := range []string{"v1beta2", "v1beta3"} {
			if version == "v1beta2" && strings.Contains(test.profile, "multiPoint: {enabled") {
				continue // 1.23 does not read it
			}
			t.Run(name+" "+version, func(t *testing.T) {
				text := strings.Replace(header, "v1beta3", version, 1) + "profiles:\n- schedulerName: served" + test.profile
				profile, err := LoadProfile(writeFile(t, "config.yaml", text), "", testPlugins(t))
				if err != nil {
					t.Fatal(err)
				}
				client := fake.NewSimpleClientset()
				decider, err := newDecider(profile, connections{client: client, factory: newInformerFactory(client), events: &events.FakeRecorder{}})
				if err != nil {
					t.Fatal(err)
				}
				preFilter, filter, preScore, score := decider.Serves()
				if got := [4]string{listed(preFilter), listed(filter), listed(preScore), listed(score)}; got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
				if strings.Contains(test.profile, "MyScorePlugin, args") {
					args := &pluginsconfig.MyScorePluginArgs{NodeLabel: new("zone"), PreferredValues: []string{"a"}}
					want := []schedulerconfig.PluginConfig{{Name: "MyScorePlugin", Args: args}}
					if !reflect.DeepEqual(profile.profile.PluginConfig, want) {
						t.Errorf("args %+v", profile.profile.PluginConfig)
					}
				}
			})
		}
	}
}

func TestConfigurationsThatAreRefused(t *testing.T) {
	const two = header + "profiles:\n- schedulerName: one\n- schedulerName: two\n  plugins: {multiPoint: {enabled: [{name: MyScorePlugin}]}}\n"
	for name, test := range map[string]struct {
		text, profile string
		// want are parts of the error; none is no error.
		want []string
	}{
		"the one that is asked for":     {two, "two", nil},
		"not said which":                {two, "", []string{"has 2 profiles", "--profile: one, two"}},
		"no such profile":               {two, "three", []string{"has no profile three", "--profile: one, two"}},
		"the only one, by another name": {byDiskType, "three", []string{"has no profile three"}},
		"nothing of ours":               {two, "one", []string{"the profile one", "enables no plugin of this project", "MyScorePlugin"}},
		"multiPoint of v1beta2":         {strings.Replace(byDiskType, "v1beta3", "v1beta2", 1), "", []string{"enables no plugin", "ignores multiPoint"}},
		"no YAML":                       {"{", "", []string{"cannot be used", "next: correct the file"}},
		"no configuration":              {"apiVersion: v1\nkind: Pod\n", "", []string{"cannot be used"}},
		"unknown field":                 {header + "profile: []\n", "", []string{"\n  profile: unknown field: the known fields are"}},
		"unknown version":               {strings.Replace(byDiskType, "v1beta3", "v9", 1), "", []string{"v9"}},
		"unknown argument": {strings.Replace(byDiskType, "nodeLabel", "nodeLabl", 1), "", []string{
			"\n  profiles[0].pluginConfig[0].args.nodeLabl: unknown field: the known fields are nodeLabel, preferredValues"}},
		"argument of the wrong type": {strings.Replace(byDiskType, "[ssd, hdd]", "ssd", 1), "", []string{"preferredValues"}},
		"two arguments out of range, at once": {strings.NewReplacer("disktype", `"!"`, "[ssd, hdd]", "[]").Replace(byDiskType), "", []string{
			"\n  profiles[0].pluginConfig[0].args.nodeLabel: Invalid value",
			"\n  profiles[0].pluginConfig[0].args.preferredValues: Required value"}},
		"of upstream's, too": {byDiskType + "percentageOfNodesToScore: 101\n", "", []string{"percentageOfNodesToScore: Invalid value: 101"}},
		"slip of the pen":    {strings.ReplaceAll(byDiskType, "name: MyScorePlugin", "name: MyScorePlugn"), "", []string{"MyScorePlugn", "correct the names"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := LoadProfile(writeFile(t, "config.yaml", test.text), test.profile, Plugins())
			if test.want == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range append(test.want, "next: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in %q", want, err)
				}
			}
		})
	}
}

// TestPluginsThatCannotBeMade sees the error of a plugin's own New.
func TestPluginsThatCannotBeMade(t *testing.T) {
	registry := testPlugins(t)
	profile, err := LoadProfile(writeFile(t, "config.yaml", enabling("name: Alone")), "", registry)
	if err != nil {
		t.Fatal(err)
	}
	profile.registry = frameworkruntime.Registry{"Alone": registry["Alone"]}
	client := fake.NewSimpleClientset()
	_, err = newDecider(profile, connections{client: client, factory: newInformerFactory(client)})
	if err == nil || !strings.Contains(err.Error(), "; next: ") {
		t.Errorf("got %v", err)
	}
}
