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
		want          FileKind
		says          string
	}{
		{".kube-scheduler.yaml.swp", copied, IgnoredFile, ""},
		{".broken", "{", IgnoredFile, ""},
		{"etcd.yaml", etcd, OtherPod, ""},
		{"/etc/kubernetes/manifests/etcd.yaml", etcd, OtherPod, ""},
		{"etcd.json", "{\"apiVersion\": \"v1\", \"kind\": \"Pod\", \"metadata\": {\"name\": \"etcd\"}, \"spec\": {\"containers\": [{\"name\": \"a\"}]}}", OtherPod, ""},
		{"etcd", etcd, OtherPod, ""},
		{"etcd.v3.5.yaml", etcd, OtherPod, ""},
		{"kube-vip.yml", pod("kube-vip", "/kube-vip, manager"), OtherPod, ""},
		{"log-reader.yaml", pod("log-reader", "tail, -f, /var/log/kube-scheduler"), OtherPod, ""},
		{"two.yaml", etcd + "---\nkind: Service\n", OtherPod, ""},

		{"kube-scheduler.yaml.bak", copied, SecondScheduler, "kube-system/kube-scheduler"},
		{"z.yaml", strings.Replace(copied, "- kube-scheduler\n", "- other\n", 1), SecondScheduler, "own name"},
		{"elsewhere.yaml", strings.Replace(copied, "namespace: kube-system", "namespace: other", 1), SecondScheduler, "container \"kube-scheduler\" of pod other/kube-scheduler"},
		{"my.yaml", pod("mine", "/usr/bin/kube-scheduler, --v=2"), SecondScheduler, "container \"main\" of pod kube-system/mine"},
		{"shell.yaml", pod("mine", `sh, -c, "exec kube-scheduler --v=2"`), SecondScheduler, "second kube-scheduler"},
		{"image.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: b, image: \"x:5000/kube-scheduler@sha256:ab\"}]}\n", SecondScheduler, "pod default/a"},
		{"two.yaml", copied + "---\n" + etcd, SecondScheduler, "own name"},

		{"etcd.yaml.bak", etcd, BackupPod, "kube-system/etcd"},
		{"etcd.yaml.orig", etcd, BackupPod, ""},
		{"etcd.old", etcd, BackupPod, ""},
		{"etcd.yaml.save.1", etcd, BackupPod, ""},
		{"etcd.yaml~", etcd, BackupPod, ""},
		{"#etcd.yaml#", etcd, BackupPod, ""},
		{"etcd.swp", etcd, BackupPod, ""},
		{"etcd.yaml.rpmsave", etcd, BackupPod, ""},
		{"etcd.yaml.dpkg-old", etcd, BackupPod, ""},
		{"etcd.yaml.20240229", etcd, BackupPod, ""},
		{"etcd.yaml.2024-02-29", etcd, BackupPod, ""},
		{"etcd.bak.yaml", etcd, BackupPod, ""},
		{"etcd-backup.yaml", etcd, BackupPod, ""},

		{"notes.txt", "remember to\n\tedit: this: one\n", Unreadable, "cannot run notes.txt"},
		{"empty.yaml", "", Unreadable, "it is empty"},
		{"deployment.yaml", "apiVersion: apps/v1\nkind: Deployment\n", Unreadable, "kind \"Deployment\" instead of a v1 Pod"},
		{"long.yaml", etcd + "#" + strings.Repeat("x", maxManifest), Unreadable, "more than 10485760 bytes"},
		{"broken.json", "{apiVersion: v1}", Unreadable, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ClassifyFile(test.name, []byte(test.content), scheduler)
			if got.Kind != test.want || !strings.Contains(got.Explanation, test.says) {
				t.Errorf("it is %q: %s\nwant %q: …%s…", got.Kind, got.Explanation, test.want, test.says)
			}
			silent := got.Explanation == "" && got.Next == ""
			if got.Harmless() != silent || got.Serious() != (got.Kind == SecondScheduler) {
				t.Errorf("harmless %t, serious %t, %q, %q", got.Harmless(), got.Serious(), got.Explanation, got.Next)
			}
			if strings.Contains(got.Explanation, "\n") || strings.Contains(got.Explanation, "next:") || strings.HasSuffix(got.Explanation, ".") {
				t.Errorf("not one sentence: %q", got.Explanation)
			}
		})
	}
}
