// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	restclient "k8s.io/client-go/rest"
)

// The pods of BenchmarkDecision are in no gang, and have a quota.
func init() {
	kubeConfig = &restclient.Config{Host: httptest.NewServer(http.HandlerFunc(serveQuota)).URL}
	thirdParty = append(thirdParty, struct{ name, config string }{"GangsAndQuotas", `
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      queueSort:
        enabled: [{name: Coscheduling}]
        disabled: [{name: "*"}]
      multiPoint:
        enabled: [{name: CapacityScheduling}, {name: Coscheduling}]
      postFilter:
        disabled: [{name: DefaultPreemption}]
`})
}

// serveQuota serves a single ElasticQuota that never changes.
func serveQuota(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case request.URL.Query().Get("watch") != "":
		<-request.Context().Done()
	case strings.HasSuffix(request.URL.Path, "/v1alpha1"):
		io.WriteString(w, `{"groupVersion":"scheduling.sigs.k8s.io/v1alpha1","resources":[{"name":"elasticquotas"},{"name":"podgroups"}]}`)
	case strings.HasSuffix(request.URL.Path, "/elasticquotas"):
		io.WriteString(w, `{"metadata":{"resourceVersion":"1"},"items":[
			{"metadata":{"namespace":"default","name":"quota"},"spec":{"min":{"cpu":"1M","memory":"1Pi"},"max":{"cpu":"1M","memory":"1Pi"}}}]}`)
	default:
		io.WriteString(w, `{"kind":"PodGroupList","apiVersion":"scheduling.sigs.k8s.io/v1alpha1","metadata":{"resourceVersion":"1"},"items":[]}`)
	}
}
