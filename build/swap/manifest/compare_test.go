// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"strings"
	"testing"
	"time"
)

func TestARollbackSaysWhatItWentBackTo(t *testing.T) {
	swapped, err := Apply([]byte(stock), Swap{Image: "ours:1", Version: "v1.23.17+ours", ConfigFolder: "/kept/0123",
		ConfigSHA256: strings.Repeat("0123456789abcdef", 4)})
	if err != nil {
		t.Fatal(err)
	}
	for want, manifest := range map[string]string{
		"the image registry.k8s.io/kube-scheduler:v1.23.17 and no configuration":              stock,
		"the image ours:1 (v1.23.17+ours) and the configuration /kept/0123/" + ConfigFileName: string(swapped.Manifest),
	} {
		if got := InWords([]byte(manifest)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestARestartIsNoOtherManifest(t *testing.T) {
	restarted := restart(t, []byte(stock), time.Now())
	if !OnlyRestarted([]byte(stock), restarted) || !OnlyRestarted([]byte(stock), []byte(stock)) {
		t.Error("a manifest with the time of a restart in it is taken for another one")
	}
	if OnlyRestarted([]byte(stock), []byte(strings.Replace(string(restarted), "v1.23.17", "v1.23.16", 1))) {
		t.Error("a manifest with another image is taken for the same")
	}
}

func TestRollbackKnowsWhetherItGoesBackToWhatWasSwapped(t *testing.T) {
	edit, err := Apply([]byte(stock), Swap{Image: "ours:1", Version: "v1", RestartedAt: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	pod, err := Describe(edit.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if !SwapOf([]byte(stock), &pod) {
		t.Error("a swap is taken for another manifest")
	}
	if SwapOf([]byte(strings.Replace(stock, "10259", "10260", 1)), &pod) {
		t.Error("the swap of another manifest is taken for that of this one")
	}
}
