// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kube-scheduler-fork/build/swap/manifest"
	"kube-scheduler-fork/build/swap/swaptest"
)

func TestTheFilesThatAConfigurationNames(t *testing.T) {
	folder := t.TempDir()
	kubeconfig := swaptest.Put(t, filepath.Join(folder, "scheduler.conf"), "apiVersion: v1\nkind: Config\n"+
		"clusters: [{name: c, cluster: {certificate-authority: pki/ca.crt}}]\n"+
		"users: [{name: u, user: {client-certificate: "+folder+"/client.crt, client-key-data: a2V5}}]\n")
	manifest := strings.Replace(swaptest.Mounting(folder, "Directory", folder), "image:", "args: [--tls-cert-file="+folder+"/tls.crt, --bind-address, 127.0.0.1]\n    image:", 1)
	config := "clientConnection: {kubeconfig: " + kubeconfig + "}\n" +
		"extenders: [{urlPrefix: https://e, tlsConfig: {caFile: " + folder + "/extender.crt}}]\n" +
		"profiles: [{pluginConfig: [{name: NodeLoad, args: {bearerTokenFile: " + folder + "/token, query: /, other: /etc/not-mounted}}]}]\n"
	got := FilesOf(swaptest.PodOf(t, manifest), []byte(config))
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], folder+"/")
	}
	slices.Sort(got)
	want := []string{"client.crt", "extender.crt", "pki/ca.crt", "scheduler.conf", "tls.crt", "token"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestAFileThatAUserCannotReadIsFound(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	folder := t.TempDir()
	file := func(name string, mode os.FileMode, owner, group int) string {
		path := swaptest.Put(t, filepath.Join(folder, name), "x")
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, owner, group); err != nil {
			t.Fatal(err)
		}
		return path
	}
	open, groups, roots, others := file("open", 0o644, 0, 0), file("group", 0o640, 0, manifest.NonRootUser), file("root", 0o600, 0, 0), file("other", 0o600, 1000, 1000)
	inside := file("closed/inside", 0o644, 0, 0)
	if err := os.Chmod(filepath.Dir(inside), 0o700); err != nil {
		t.Fatal(err)
	}
	v, err := NewView(t.TempDir(), swaptest.PodOf(t, swaptest.Mounting(folder, "Directory", folder)), nil)
	if err != nil {
		t.Fatal(err)
	}
	// The container runtime enters the directory of the image as root.
	if err := os.Chmod(v.root, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		user uint32
		want []string
	}{
		{manifest.NonRootUser, []string{roots, others, inside, filepath.Dir(inside)}},
		{0, []string{others}},
	} {
		got, err := v.Unreadable(syscall.Credential{Uid: c.user, Gid: c.user}, []string{open, groups, roots, others, inside, folder + "/absent"})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("user %d cannot read %q, %v; want %q", c.user, got, err, c.want)
		}
	}
}
