// SPDX-License-Identifier: Apache-2.0

package run

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/localcluster"
)

const configHead = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"

func TestExtenderIsStartedIfItIsGivenOrAskedAtTheDocumentedAddress(t *testing.T) {
	const documented, own, remote = "https://127.0.0.1:8888/", "http://localhost:9999", "https://192.0.2.1:8888"
	asks := func(urls ...string) string {
		content := configHead + "extenders:\n"
		for _, url := range urls {
			content += "- {urlPrefix: '" + url + "', filterVerb: filter}\n"
		}
		return writeFile(t, content)
	}
	asksNone := writeFile(t, configHead+"extenders: []\n")
	const program = "/bin/true"
	plain, given := writeFile(t, configHead), writeFile(t, configHead+"profiles: [{schedulerName: only}]\n")
	several := writeFile(t, configHead+"profiles: [{schedulerName: a}, {schedulerName: b}]\n")
	start := func(file, replaces string, replaced ...string) extenderPlan {
		return extenderPlan{config: file, replaces: replaces, replaced: replaced}
	}
	byDefault := start(plain, localcluster.DocumentedExtender, documented)
	named := start(several, "", own)
	named.profile = "b"
	for name, test := range map[string]struct {
		config, given, profile, program string
		want                            extenderPlan
		note, fails                     string
	}{
		"documented":                {asks(documented), "", "", program, byDefault, "", ""},
		"documented and own":        {asks(documented, own), "", "", program, byDefault, own, ""},
		"own":                       {asks(own), "", "", program, extenderPlan{}, own, ""},
		"remote":                    {asks(remote), "", "", program, extenderPlan{}, "names none at", ""},
		"empty list":                {asksNone, "", "", program, extenderPlan{}, "names none at", ""},
		"nothing of the kind":       {asksNone, "", "", "", extenderPlan{}, "", ""},
		"none":                      {asks(documented), "none", "", "", extenderPlan{}, documented, ""},
		"given":                     {asks(documented, own, remote), given, "", program, start(given, "", documented, own), "", ""},
		"given, none is asked":      {asks(remote), given, "", program, extenderPlan{}, "", "would not call"},
		"given, several profiles":   {asks(own), several, "", program, extenderPlan{}, "", "several profiles (a, b)"},
		"given, one of several":     {asks(own), several, "b", program, named, "", ""},
		"given, another profile":    {asks(own), several, "c", program, extenderPlan{}, "", "no profile c"},
		"given, not there":          {asks(own), given + "x", "", program, extenderPlan{}, "", "no such file"},
		"no program":                {asks(documented), "", "", "", extenderPlan{}, "", "no program was given"},
		"program is not there":      {asks(documented), "", "", program + "x", extenderPlan{}, "", "the extender's program"},
		"profile without extender":  {asks(own), "", "a", program, extenderPlan{}, "", "no extender is started"},
		"profile, and none started": {asks(documented), "none", "a", program, extenderPlan{}, "", "no extender is started"},
	} {
		o := Options{
			Config: test.config, Extender: test.program, ExtenderConfig: test.given, ExtenderProfile: test.profile,
			DefaultExtenderConfig: plain,
		}
		got, err := o.planExtender()
		if test.fails != "" {
			if err == nil || !strings.Contains(err.Error(), test.fails) || !strings.Contains(err.Error(), "next: ") {
				t.Errorf("%s: got %v, want an error with %q and the next step", name, err, test.fails)
			}
			continue
		}
		notes := strings.Join(got.notes, "\n")
		if (notes == "") != (test.note == "") || !strings.Contains(notes, test.note) {
			t.Errorf("%s: notes %q, want %q among them", name, notes, test.note)
		}
		if got.notes = nil; err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, test.want)
		}
	}
}

func TestPodsWhoseTurnNeverCameStandInTheTable(t *testing.T) {
	results := notCreated([][]*corev1.Pod{{localcluster.NewPod("first", "s")}, {localcluster.NewPod("second", "s")}})
	var out strings.Builder
	if err := printTable(&out, results, nil); err != nil {
		t.Fatal(err)
	}
	if len(results) != 2 || strings.Count(out.String(), "not created: timed out") != 2 {
		t.Errorf("the table is\n%s\nwant both pods in it, as not created", out.String())
	}
	if judge(results) == nil {
		t.Error("pods that were not created are right")
	}
}
