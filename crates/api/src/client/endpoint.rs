//! Calls about the endpoints through which agents send their requests.

use super::Client;
use super::error::ClientError;
use super::responses::{decode, required};
use crate::proto;
use crate::proto::__buffa::view;
use crate::request::EndpointAddress;

/// Upstream names with their URLs.
pub type UpstreamUrls = std::collections::BTreeMap<String, String>;

impl Client {
    /// Opens an endpoint for one run of an agent. The URLs replace configured ones.
    pub async fn open_endpoint(
        &self,
        agent: Option<&str>,
        upstreams: &UpstreamUrls,
    ) -> Result<EndpointAddress, ClientError> {
        let request = proto::OpenEndpointRequest {
            agent: agent.map(str::to_owned),
            upstreams: upstreams.clone().into_iter().collect(),
            ..Default::default()
        };
        let spec = proto::REQUEST_SERVICE_OPEN_ENDPOINT_SPEC;
        let response = self.call::<_, view::OpenEndpointResponseView<'static>, _>(spec, request).await?;
        decode(required::<proto::AgentEndpoint>(response.endpoint, "endpoint")?)
    }

    /// Returns the persistent endpoint for an agent that a person configures: the same for the same agent and upstreams.
    pub async fn persistent_endpoint(
        &self,
        agent: Option<&str>,
        upstreams: &UpstreamUrls,
    ) -> Result<EndpointAddress, ClientError> {
        let request = proto::GetPersistentEndpointRequest {
            agent: agent.map(str::to_owned),
            upstreams: upstreams.clone().into_iter().collect(),
            ..Default::default()
        };
        let spec = proto::REQUEST_SERVICE_GET_PERSISTENT_ENDPOINT_SPEC;
        let response = self.call::<_, view::GetPersistentEndpointResponseView<'static>, _>(spec, request).await?;
        decode(required::<proto::AgentEndpoint>(response.endpoint, "endpoint")?)
    }

    /// Closes the endpoint of a finished run. Returns `false` if there was none, or if it is persistent.
    pub async fn close_endpoint(&self, capability: &str) -> Result<bool, ClientError> {
        let request = proto::CloseEndpointRequest { capability: capability.to_owned(), ..Default::default() };
        let spec = proto::REQUEST_SERVICE_CLOSE_ENDPOINT_SPEC;
        let response = self.call::<_, view::CloseEndpointResponseView<'static>, _>(spec, request).await?;
        Ok(response.closed)
    }
}
