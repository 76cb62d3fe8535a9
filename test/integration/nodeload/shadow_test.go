// SPDX-License-Identifier: Apache-2.0

package nodeload

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/localcluster"
	"kube-scheduler-fork/test/cluster"
)

// shadowed tests the configuration of the first week: the record of a pod that NodeLoad does not place has the loads of
// the nodes, and a dry run in the other profile avoids the hot node.
func shadowed(t *testing.T) {
	const profile = "node-load-shadow"
	var targets []target
	for i := range 3 {
		labels := map[string]string{"instance": fmt.Sprintf("10.0.0.%d:9100", i+1)}
		targets = append(targets, target{fmt.Sprint("node-", i), labels})
	}
	s := newTargetsStand(t, &shared, newNodes(3), targets...)
	hot := s.nodes[0]
	s.exporters.load(0.9, "node-0")
	config := cluster.Read(t, root+"manifests/config/node-load-shadow.yaml")
	soon := `"` + s.prometheus.URL() + "\"]\n          refreshInterval: 1s"
	s.write(t, "shadow.yaml", strings.ReplaceAll(config, `"http://127.0.0.1:9090"]`, soon))
	scheduler := s.startScheduler(t, "kube-scheduler", s.file("shadow.yaml"))
	s.await(t, "the load of the hot node", func() error {
		page, err := s.page(scheduler)
		if err != nil {
			return err
		}
		measured := page.of[profile][hot]
		return cluster.Unless(measured["cpu"].percent > 85 && measured["memory"].percent > 85, "%v", measured)
	})

	pod := s.CreatePod(t, localcluster.NewPod("shadowed", corev1.DefaultSchedulerName))
	s.AwaitBound(t, pod)
	record, err := s.Get(t.Context(), scheduler.URL()+"/scheduling/pods/default/shadowed")
	if err != nil {
		t.Fatal(err)
	}
	if loads := regexp.MustCompile(hot + `: cpu (8[5-9]|9\d)%, memory (8[5-9]|9\d)%\.`); !loads.Match(record) {
		t.Errorf("the record does not match %v:\n%s", loads, record)
	}
	var shadow struct {
		Node   string
		Scores []struct{ Node string }
	}
	if err := json.Unmarshal(s.whatIf(t, scheduler, localcluster.NewPod("asked", profile)), &shadow); err != nil {
		t.Fatal(err)
	}
	if shadow.Node == "" || shadow.Node == hot || len(shadow.Scores) != 3 || shadow.Scores[2].Node != hot {
		t.Errorf("the dry run is %+v, want the hot node %s last", shadow, hot)
	}
}

// whatIf returns the dry run of a pod that does not exist.
func (s *stand) whatIf(t *testing.T, scheduler *localcluster.Scheduler, pod *corev1.Pod) []byte {
	t.Helper()
	pod.APIVersion, pod.Kind = "v1", "Pod"
	manifest, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	code, content, err := s.Ask(t.Context(), http.MethodPost, scheduler.URL()+"/scheduling/what-if", bytes.NewReader(manifest))
	if err != nil || code != http.StatusOK {
		t.Fatalf("%d, %v: %s", code, err, content)
	}
	return content
}
