// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	restclient "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"sigs.k8s.io/scheduler-plugins/pkg/capacityscheduling"
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
)

// The pods of BenchmarkDecision are in no gang, and have a quota.
func init() {
	server := httptest.NewServer(http.HandlerFunc(serveQuota))
	carried := frameworkruntime.Registry{}
	for name, factory := range map[string]frameworkruntime.PluginFactory{
		coscheduling.Name: coscheduling.New, capacityscheduling.Name: capacityscheduling.New,
	} {
		carried[name] = func(args apiruntime.Object, handle framework.Handle) (framework.Plugin, error) {
			return factory(args, apiHandle{handle, &restclient.Config{Host: server.URL}})
		}
	}
	thirdParty = append(thirdParty, struct {
		name     string
		registry frameworkruntime.Registry
		config   string
	}{"GangsAndQuotas", carried, `
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

// apiHandle is a Handle with an API server.
type apiHandle struct {
	framework.Handle
	config *restclient.Config
}

func (h apiHandle) KubeConfig() *restclient.Config { return h.config }

// serveQuota serves a single ElasticQuota that never changes.
func serveQuota(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case request.URL.Query().Get("watch") != "":
		<-request.Context().Done()
	case strings.HasSuffix(request.URL.Path, "/elasticquotas"):
		io.WriteString(w, `{"metadata":{"resourceVersion":"1"},"items":[
			{"metadata":{"namespace":"default","name":"quota"},"spec":{"min":{"cpu":"1M","memory":"1Pi"},"max":{"cpu":"1M","memory":"1Pi"}}}]}`)
	default:
		io.WriteString(w, `{"metadata":{"resourceVersion":"1"},"items":[]}`)
	}
}
