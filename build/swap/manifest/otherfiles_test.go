// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"
)

func TestStrayFilesAreJudgedAsKubeletTreatsThem(t *testing.T) {
	scheduler := describe(t, string(readFile(t, "testdata/kubeadm/before.yaml")))
	copied := string(readFile(t, "testdata/kubeadm/before.yaml"))
	pod := func(name, command string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: kube-system}\n" +
			"spec:\n  containers:\n  - {name: main, image: registry.example.com/" + name + ":1, command: [" + command + "]}\n"
	}
	etcd := pod("etcd", "etcd, --name=kube-scheduler")
	for _, test := range []struct {
		name, content string
		serious       bool
		says          string // empty: nothing
	}{
		{".kube-scheduler.yaml.swp", copied, false, ""},
		{".broken", "{", false, ""},
		{"etcd.yaml", etcd, false, ""},
		{"etcd.json", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"etcd\"}, \"spec\": {\"containers\": [{\"name\": \"a\"}]}}", false, ""},
		{"etcd", etcd, false, ""},
		{"etcd.v3.5.yaml", etcd, false, ""},
		{"kube-vip.yml", pod("kube-vip", "/kube-vip, manager"), false, ""},
		{"log-reader.yaml", pod("log-reader", "tail, -f, /var/log/kube-scheduler"), false, ""},
		{"two.yaml", etcd + "---\nkind: Service\n", false, ""},

		{"kube-scheduler.yaml.bak", copied, true, "kube-system/kube-scheduler"},
		{"z.yaml", strings.Replace(copied, "- kube-scheduler\n", "- other\n", 1), true, "own name"},
		{"elsewhere.yaml", strings.Replace(copied, "namespace: kube-system", "namespace: other", 1), true, "container \"kube-scheduler\" of pod other/kube-scheduler"},
		{"my.yaml", pod("mine", "/usr/bin/kube-scheduler, --v=2"), true, "container \"main\" of pod kube-system/mine"},
		{"shell.yaml", pod("mine", `sh, -c, "exec kube-scheduler --v=2"`), true, "second kube-scheduler"},
		{"image.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: b, image: \"x:5000/kube-scheduler@sha256:ab\"}]}\n", true, "pod default/a"},
		{"two.yaml", copied + "---\n" + etcd, true, "own name"},

		{"etcd.yaml.bak", etcd, false, "this one is kube-system/etcd"},
		{"etcd.yaml.orig", etcd, false, "looks like a backup copy"},
		{"etcd.old", etcd, false, "looks like a backup copy"},
		{"etcd.yaml.save.1", etcd, false, "looks like a backup copy"},
		{"etcd.yaml~", etcd, false, "looks like a backup copy"},
		{"#etcd.yaml#", etcd, false, "looks like a backup copy"},
		{"etcd.swp", etcd, false, "looks like a backup copy"},
		{"etcd.yaml.rpmsave", etcd, false, "looks like a backup copy"},
		{"etcd.yaml.dpkg-old", etcd, false, "looks like a backup copy"},
		{"etcd.yaml.20240229", etcd, false, "looks like a backup copy"},
		{"etcd.yaml.2024-02-29", etcd, false, "looks like a backup copy"},
		{"etcd.bak.yaml", etcd, false, "looks like a backup copy"},
		{"etcd-backup.yaml", etcd, false, "looks like a backup copy"},

		{"notes.txt", "remember to\n\tedit: this: one\n", false, "cannot run notes.txt"},
		{"empty.yaml", "", false, "it is empty"},
		{"deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\n", false, "kind \"Deployment\" instead of a v1 Pod"},
		{"long.yaml", etcd + "#" + strings.Repeat("x", maxManifest), false, "more than 10485760 bytes"},
		{"broken.json", "{apiVersion: v1}", false, "kubelet cannot run"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ClassifyFile(test.name, []byte(test.content), scheduler)
			if got.Serious != test.serious || !strings.Contains(got.Explanation, test.says) {
				t.Errorf("%+v\nwant %t: …%s…", got, test.serious, test.says)
			}
			if (got.Explanation == "") != (test.says == "") || (got.Next == "") != (test.says == "") {
				t.Errorf("%+v, want it for %q", got, test.says)
			}
			if strings.Contains(got.Explanation, "\n") || strings.Contains(got.Explanation, "next:") || strings.HasSuffix(got.Explanation, ".") {
				t.Errorf("not one sentence: %q", got.Explanation)
			}
		})
	}
}
