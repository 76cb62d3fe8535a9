// SPDX-License-Identifier: Apache-2.0

package endtoend

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"kube-scheduler-fork/test/testinput"
)

// prometheus is a real Prometheus that scrapes the exporters. It can be killed and started again.
type prometheus struct {
	program, folder, address string
	// kill ends the process, and returns when it is gone; nil while none runs.
	kill func()
}

// newPrometheus starts Prometheus. Its address stays the same when it is started again: it is one of which nobody else takes
// ports meanwhile.
func newPrometheus(t *testing.T, exporters *exporters) *prometheus {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &prometheus{program: testinput.File(t, "PROMETHEUS"), folder: t.TempDir(), address: listener.Addr().String()}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	var targets []any
	for node, exporter := range exporters.of {
		targets = append(targets, map[string]any{
			"targets": []string{exporters.address()},
			"labels":  map[string]string{"__metrics_path__": "/metrics/" + node, "instance": exporter.instance},
		})
	}
	config, err := yaml.Marshal(map[string]any{
		"global": map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s"},
		"scrape_configs": []any{map[string]any{
			"job_name": "node", "static_configs": targets,
			// Exporters may say who they are, and when it was.
			"honor_labels": true, "honor_timestamps": true,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p.file("config.yaml"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	t.Cleanup(func() {
		if p.kill != nil {
			p.kill()
		}
	})
	return p
}

func (p *prometheus) file(name string) string { return filepath.Join(p.folder, name) }

func (p *prometheus) url() string { return "http://" + p.address }

// start starts the process and waits until it answers.
func (p *prometheus) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(p.file("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	command := exec.Command(p.program, "--config.file="+p.file("config.yaml"), "--storage.tsdb.path="+p.file("data"),
		"--web.listen-address="+p.address, "--log.level=warn")
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, exited := make(chan error, 1), make(chan struct{})
	go func() {
		// The kernel ends the child with the thread that forked it, so that thread waits for it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := command.Start()
		started <- err
		if err == nil {
			_ = command.Wait() // it is killed, or its log says why it ended
		}
		close(exited)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	p.kill = func() {
		p.kill = nil
		_ = command.Process.Kill() // an error says that it has ended
		<-exited
	}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		if response, err := http.Get(p.url() + "/-/ready"); err == nil {
			code := response.StatusCode
			if response.Body.Close(); code == http.StatusOK {
				return
			}
		}
		select {
		case <-ticker.C:
		case <-exited:
			t.Fatalf("Prometheus ended; next: see what its log says:\n%s", endOf(p.file("log")))
		case <-late.C:
			t.Fatalf("Prometheus is not ready after %s; next: see what its log says:\n%s", patience, endOf(p.file("log")))
		}
	}
}

// endOf gives the last lines of a log.
func endOf(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return fmt.Sprintf("%s:\n%s", filepath.Base(file), strings.Join(lines[max(0, len(lines)-20):], "\n"))
}
