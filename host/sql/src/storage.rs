//! How the engine reads files: those of the store, and nothing else, and never writes.

use std::fmt;
use std::path::{Path as FsPath, PathBuf};

use async_trait::async_trait;
use datafusion::error::Result as EngineResult;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::object_store::local::LocalFileSystem;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use futures::stream::{self, BoxStream, StreamExt};
use weir_store::StoredFile;

/// Times that a file is looked for: it is renamed when it begins to count and when it ceases to.
const LOOKS: usize = 4;

/// The store's files under the names that the manifest gives them.
#[derive(Debug)]
pub struct Storage {
    folder: PathBuf,
    local: LocalFileSystem,
}

impl Storage {
    /// Those of the store in a folder.
    pub fn open(folder: &FsPath) -> EngineResult<Self> {
        Ok(Self {
            local: LocalFileSystem::new_with_prefix(folder)?,
            folder: folder.to_owned(),
        })
    }

    /// What plans call it.
    pub fn url() -> EngineResult<ObjectStoreUrl> {
        ObjectStoreUrl::parse("weir://store")
    }

    /// Where a file is now.
    fn place(&self, location: &Path) -> Result<Path> {
        let file = StoredFile {
            path: location.to_string(),
            ..StoredFile::default()
        };
        let place = weir_store::locate(&self.folder, &file);
        let place = place.strip_prefix(&self.folder).unwrap_or(&place);
        Ok(Path::parse(place.to_string_lossy())?)
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "store {}", self.folder.display())
    }
}

fn refused<T>() -> Result<T> {
    Err(Error::NotImplemented {
        operation: "change or list".to_owned(),
        implementer: "Weir's store".to_owned(),
    })
}

#[async_trait]
impl ObjectStore for Storage {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let mut looks = 0;
        loop {
            let found = self.local.get_opts(&self.place(location)?, options.clone()).await;
            looks += 1;
            match found {
                Err(Error::NotFound { .. }) if looks < LOOKS => {}
                other => return other,
            }
        }
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        refused()
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        refused()
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        stream::once(async { refused() }).boxed()
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::once(async { refused() }).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        refused()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        refused()
    }
}
