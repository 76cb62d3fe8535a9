// SPDX-License-Identifier: Apache-2.0

package app

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/component-base/configz"
	"k8s.io/klog/v2"
	schedulerserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
)

// setupWith runs Setup with the flags, and without an API server or a secure port.
func setupWith(ctx context.Context, t *testing.T, flags ...string) (*schedulerserverconfig.CompletedConfig, *scheduler.Scheduler) {
	t.Helper()
	fs, opts := pflag.NewFlagSet("test", pflag.PanicOnError), options.NewOptions()
	for _, set := range opts.Flags.FlagSets {
		fs.AddFlagSet(set)
	}
	if err := fs.Parse(append(flags, "--master=http://127.0.0.1:1", "--secure-port=0")); err != nil {
		t.Fatal(err)
	}
	cc, sched, err := Setup(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	return cc, sched
}

// TestSecretsOfExtenders starts a scheduler whose extender has a private key, and a password in its address.
func TestSecretsOfExtenders(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if file := os.Getenv("WRITE_CONFIG_OF"); file != "" {
		// Setup ends the process.
		setupWith(ctx, t, "--config="+file, "--write-config-to="+file+".written")
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	public, secret := base64.StdEncoding.EncodeToString(certificate), base64.StdEncoding.EncodeToString(key)
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(`
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
extenders:
- urlPrefix: https://user:password@127.0.0.1:1/prefix
  filterVerb: filter
  enableHTTPS: true
  tlsConfig: {insecure: true, certData: %s, keyData: %s}
`, public, secret)), 0600); err != nil {
		t.Fatal(err)
	}
	// show checks text that people other than the configuration's owner may read.
	show := func(where, text string) {
		if strings.Contains(text, secret) || strings.Contains(text, "password") {
			t.Errorf("%s has secrets:\n%s", where, text)
		}
		if !strings.Contains(text, public) || !strings.Contains(text, "REDACTED") || !strings.Contains(text, "https://127.0.0.1:1/prefix") {
			t.Errorf("%s does not have the rest:\n%s", where, text)
		}
	}

	var log bytes.Buffer
	var level klog.Level
	klog.LogToStderr(false)
	klog.SetOutput(&log)
	level.Set("2")
	cc, sched := setupWith(ctx, t, "--config="+file)
	level.Set("0")
	klog.SetOutput(os.Stderr)
	klog.LogToStderr(true)
	show("the log", log.String())

	defer configz.Delete("componentconfig")
	Run(ctx, cc, sched)
	mux, answer := http.NewServeMux(), httptest.NewRecorder()
	configz.InstallHandler(mux)
	mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/configz", nil))
	show("/configz", answer.Body.String())
	if e := cc.ComponentConfig.Extenders[0]; !bytes.Equal(e.TLSConfig.KeyData, key) || !strings.Contains(e.URLPrefix, "password") {
		t.Errorf("the scheduler runs with %v", e)
	}

	// A scheduler must be able to start with a written file. Others can no longer read one that exists.
	if err := os.WriteFile(file+".written", nil, 0644); err != nil {
		t.Fatal(err)
	}
	write := exec.Command(os.Args[0], "-test.run=^TestSecretsOfExtenders$")
	write.Env = append(os.Environ(), "WRITE_CONFIG_OF="+file)
	out, err := write.CombinedOutput()
	info, statErr := os.Stat(file + ".written")
	if err != nil || statErr != nil || info.Mode() != 0600 {
		t.Fatalf("%v: %s\n%v, mode %v", err, out, statErr, info)
	}
	if written, err := os.ReadFile(file + ".written"); err != nil || !bytes.Contains(written, []byte(secret)) || !bytes.Contains(written, []byte("password")) {
		t.Errorf("the file lacks secrets (%v):\n%s", err, written)
	}
}
